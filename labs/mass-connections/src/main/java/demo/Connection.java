package demo;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.group.ChannelGroup;

/**
 * A connection and its sessions. Each message begins a session in place of the oldest, so that a session lives for as many messages as there are
 * sessions, and makes garbage that dies at once.
 */
final class Connection extends SimpleChannelInboundHandler<ByteBuf> {
    private static final byte TO_ALL = 'b';

    private final ChannelGroup all;
    private final Session[] sessions;
    private final int nodes;
    private int oldest;

    Connection(ChannelGroup all, int sessions, int nodes) {
        this.all = all;
        this.sessions = new Session[sessions];
        this.nodes = nodes;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        all.add(context.channel());
        for (int place = 0; place < sessions.length; place++) {
            sessions[place] = new Session(place);
        }
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
        long work = Garbage.sum(nodes);
        sessions[oldest] = new Session(work);
        oldest = (oldest + 1) % sessions.length;
        if (message.getByte(message.readerIndex()) == TO_ALL) {
            all.writeAndFlush(message.retain());
        } else {
            context.writeAndFlush(message.retain());
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }
}

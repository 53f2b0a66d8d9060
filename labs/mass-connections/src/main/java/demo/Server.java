package demo;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.FixedLengthFrameDecoder;
import io.netty.util.concurrent.GlobalEventExecutor;

/**
 * Holds connections of clients that send messages of 16 bytes from time to time, as a proxy of mobile clients does. A message is sent back, and to all
 * connections if it begins with {@code b}. Prints "ready" once it listens.
 */
public final class Server {
    private static final int MESSAGE = 16;
    private static final int BACKLOG = 65_535;

    private Server() {}

    public static void main(String[] arguments) throws Exception {
        Settings settings = new Settings(arguments[0]);
        int sessions = settings.number("sessions_per_connection");
        int nodes = settings.number("nodes_per_message");
        ChannelGroup all = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
        ServerBootstrap server = new ServerBootstrap()
            .group(new NioEventLoopGroup(1), new NioEventLoopGroup(settings.number("iothreads")))
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel channel) {
                    channel.pipeline().addLast(
                        new FixedLengthFrameDecoder(MESSAGE), new Connection(all, sessions, nodes));
                }
            });
        server.bind(settings.text("host"), settings.number("port")).sync();
        System.out.println("ready");
        Thread.currentThread().join();
    }
}

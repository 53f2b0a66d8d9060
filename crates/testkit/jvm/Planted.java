import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;

/**
 * A web server whose requests allocate what their path says: /heap/N an array of N bytes, /direct/N a buffer outside the heap, /fail
 * nothing and an error. All else of a request is made once per connection. The array is made by the thread of the connection ("stay"),
 * by a new thread that ends with the request ("end"), or by a new virtual thread ("virtual"). "busy" allocates 1 MB each 10 ms besides.
 * Started with an address and a port it listens there until it is killed, and allocates for each request another array of the length
 * that may follow.
 */
public class Planted {
    static volatile Object sink;
    static int extra = -1;
    static final byte[] OK = bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    static final byte[] FAILED = bytes("HTTP/1.1 500 Failed\r\nContent-Length: 2\r\n\r\nno");

    public static void main(String[] words) throws Exception {
        String how = words[0];
        boolean placed = words.length > 1;
        int port = placed ? Integer.parseInt(words[1].substring(words[1].lastIndexOf(':') + 1)) : 0;
        InetAddress address = placed
            ? InetAddress.getByName(words[1].substring(0, words[1].lastIndexOf(':')))
            : InetAddress.getLoopbackAddress();
        extra = words.length > 2 ? Integer.parseInt(words[2]) : -1;
        ServerSocket listener = new ServerSocket(port, 1024, address);
        if (how.equals("busy")) {
            start(() -> {
                while (true) {
                    sink = new byte[1 << 20];
                    Thread.sleep(10);
                }
            });
        }
        start(() -> {
            while (true) {
                Socket socket = listener.accept();
                start(() -> serve(socket, how));
            }
        });
        System.out.println(listener.getLocalPort());
        while (placed || System.in.read() >= 0) {
            if (placed) {
                Thread.sleep(1000);
            }
        }
        System.exit(0);
    }

    interface Work {
        void run() throws Exception;
    }

    static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception end) {
                // The client is gone.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static void serve(Socket socket, String how) throws Exception {
        socket.setTcpNoDelay(true);
        InputStream in = socket.getInputStream();
        OutputStream out = socket.getOutputStream();
        byte[] buffer = new byte[4096];
        Method virtual = how.equals("virtual") ? Thread.class.getMethod("startVirtualThread", Runnable.class) : null;
        int have = 0;
        while (true) {
            int read = in.read(buffer, have, buffer.length - have);
            if (read < 0) {
                socket.close();
                return;
            }
            have += read;
            if (have < 4 || buffer[have - 1] != '\n' || buffer[have - 3] != '\n') {
                continue;
            }
            char kind = (char) buffer[5];
            int size = 0;
            for (int at = 5; buffer[at] != ' '; at++) {
                if (buffer[at] >= '0' && buffer[at] <= '9') {
                    size = 10 * size + buffer[at] - '0';
                }
            }
            final int bytes = size;
            if (kind == 'f') {
                out.write(FAILED);
            } else {
                if (extra >= 0) {
                    sink = new byte[extra];
                }
                if (kind == 'd') {
                    ByteBuffer.allocateDirect(bytes);
                } else if (how.equals("end")) {
                    Thread thread = new Thread(() -> { sink = new byte[bytes]; });
                    thread.start();
                    thread.join();
                } else if (virtual != null) {
                    Runnable work = () -> { sink = new byte[bytes]; };
                    ((Thread) virtual.invoke(null, work)).join();
                } else {
                    sink = new byte[bytes];
                }
                out.write(OK);
            }
            have = 0;
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes();
    }
}

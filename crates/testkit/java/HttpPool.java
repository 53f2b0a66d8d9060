import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;

/**
 * A real Apache HttpClient 4 with few connections per route for many threads, and a server that answers after a while:
 * {@code java -cp JARS HttpPool httpclient4 [threads=N] [size=N] [hold=MS]}.
 */
public class HttpPool {
    static void httpclient4() throws Exception {
        ServerSocket server = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
        Plant.start("server", () -> {
            while (true) {
                Socket client = server.accept();
                Plant.start("server-connection", () -> answer(client));
            }
        });
        int size = Lending.size();
        CloseableHttpClient client = HttpClients.custom().setMaxConnPerRoute(size).setMaxConnTotal(size + 20).build();
        String url = "http://127.0.0.1:" + server.getLocalPort() + "/";
        int waiting = Math.max(0, Lending.threads() - size - 2);
        Lending.take(() -> EntityUtils.consume(client.execute(new HttpGet(url)).getEntity()), waiting);
    }

    /** Each request, of which only the empty line at its end matters. */
    static void answer(Socket client) throws Exception {
        InputStream in = client.getInputStream();
        byte[] reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes(StandardCharsets.US_ASCII);
        int end = 0;
        for (int next = in.read(); next >= 0; next = in.read()) {
            end = next == '\n' || next == '\r' ? end + 1 : 0;
            if (end == 4) {
                Lending.work();
                client.getOutputStream().write(reply);
                end = 0;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Plant.main(Collections.singletonMap("httpclient4", HttpPool::httpclient4), args);
    }
}

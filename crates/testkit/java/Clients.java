import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Clients whose threads wait for a reply that another thread reads, JDK 11 and later: {@code java -cp JARS Clients NAME [threads=N]}. Needs the
 * jars of OkHttp and Lettuce, which the tests do not have: the dumps in crates/threaddump/corpus were made with it. README.md names the versions.
 */
public class Clients {
    /** Accepts connections and never answers. */
    static int silent() throws Exception {
        ServerSocket server = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
        List<Socket> kept = Collections.synchronizedList(new ArrayList<>());
        Plant.start("server", () -> {
            while (true) {
                kept.add(server.accept());
            }
        });
        return server.getLocalPort();
    }

    /** Calls over HTTP/2, whose threads wait for the headers of the reply. */
    static void okhttp() throws Exception {
        okhttp3.OkHttpClient client = new okhttp3.OkHttpClient.Builder()
            .protocols(List.of(okhttp3.Protocol.H2_PRIOR_KNOWLEDGE))
            .readTimeout(java.time.Duration.ofMinutes(5))
            .build();
        okhttp3.Request request = new okhttp3.Request.Builder().url("http://127.0.0.1:" + silent() + "/").build();
        Lending.take(() -> client.newCall(request).execute().close(), Lending.threads());
    }

    static void javaHttp() throws Exception {
        java.net.http.HttpClient client = java.net.http.HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + silent() + "/")).build();
        Lending.take(() -> client.send(request, HttpResponse.BodyHandlers.ofString()), Lending.threads());
    }

    /** A pool of connections to a Redis that never answers: some wait for its reply, the others for a connection. */
    static void lettuce() throws Exception {
        io.lettuce.core.RedisURI uri = io.lettuce.core.RedisURI.create("127.0.0.1", silent());
        uri.setTimeout(java.time.Duration.ofMinutes(5));
        io.lettuce.core.RedisClient client = io.lettuce.core.RedisClient.create(uri);
        client.setOptions(io.lettuce.core.ClientOptions.builder()
            .pingBeforeActivateConnection(false)
            .protocolVersion(io.lettuce.core.protocol.ProtocolVersion.RESP2)
            .build());
        org.apache.commons.pool2.impl.GenericObjectPoolConfig<io.lettuce.core.api.StatefulRedisConnection<String, String>> config =
            new org.apache.commons.pool2.impl.GenericObjectPoolConfig<>();
        config.setMaxTotal(Lending.size());
        org.apache.commons.pool2.impl.GenericObjectPool<io.lettuce.core.api.StatefulRedisConnection<String, String>> pool =
            io.lettuce.core.support.ConnectionPoolSupport.createGenericObjectPool(client::connect, config);
        Lending.take(() -> {
            try (io.lettuce.core.api.StatefulRedisConnection<String, String> redis = pool.borrowObject()) {
                redis.sync().get("cart");
            }
        }, Lending.threads());
    }

    static final Map<String, Plant.Work> PROBLEMS = new TreeMap<>();

    static {
        PROBLEMS.put("okhttp", Clients::okhttp);
        PROBLEMS.put("java-http", Clients::javaHttp);
        PROBLEMS.put("lettuce", Clients::lettuce);
    }

    public static void main(String[] args) throws Exception {
        Plant.main(PROBLEMS, args);
    }
}

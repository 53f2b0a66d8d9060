import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import java.util.TreeMap;

/**
 * Real connection pools without a free connection: {@code java -cp JARS Pools NAME [threads=N] [size=N]}. Needs the jars of the pools,
 * which the tests do not have: the dumps in crates/threaddump/corpus were made with it. README.md names the versions.
 */
public class Pools {
    static void dbcp() throws Exception {
        org.apache.commons.dbcp2.BasicDataSource source = new org.apache.commons.dbcp2.BasicDataSource();
        source.setUrl("jdbc:nothing:x");
        source.setMaxTotal(Lending.size());
        Lending.use(source);
    }

    static void c3p0() throws Exception {
        com.mchange.v2.c3p0.ComboPooledDataSource source = new com.mchange.v2.c3p0.ComboPooledDataSource();
        source.setJdbcUrl("jdbc:nothing:x");
        source.setMaxPoolSize(Lending.size());
        source.setInitialPoolSize(Lending.size());
        source.setMinPoolSize(Lending.size());
        Lending.use(source);
    }

    static void druid() throws Exception {
        com.alibaba.druid.pool.DruidDataSource source = new com.alibaba.druid.pool.DruidDataSource();
        source.setDriver(new Lending.Nothing());
        source.setUrl("jdbc:nothing:x");
        source.setMaxActive(Lending.size());
        Lending.use(source);
    }

    static void tomcat() throws Exception {
        org.apache.tomcat.jdbc.pool.DataSource source = new org.apache.tomcat.jdbc.pool.DataSource();
        source.setUrl("jdbc:nothing:x");
        source.setDriverClassName(Lending.Nothing.class.getName());
        source.setMaxActive(Lending.size());
        Lending.use(source);
    }

    /** Two connections to each route, and a server that never answers. */
    static void httpclient5() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager manager =
            new org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager();
        manager.setDefaultMaxPerRoute(2);
        org.apache.hc.client5.http.impl.classic.CloseableHttpClient client =
            org.apache.hc.client5.http.impl.classic.HttpClients.custom().setConnectionManager(manager).build();
        String url = "http://127.0.0.1:" + server.getLocalPort() + "/";
        Lending.take(() -> client.execute(new org.apache.hc.client5.http.classic.methods.HttpGet(url)).close());
    }

    static void jedis() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        redis.clients.jedis.JedisPoolConfig config = new redis.clients.jedis.JedisPoolConfig();
        config.setMaxTotal(Lending.size());
        redis.clients.jedis.JedisPool pool = new redis.clients.jedis.JedisPool(config, "127.0.0.1", server.getLocalPort(), 60_000);
        Lending.take(() -> {
            try (redis.clients.jedis.Jedis redis = pool.getResource()) {
                redis.ping();
            }
        });
    }

    static final Map<String, Plant.Work> PROBLEMS = new TreeMap<>();

    static {
        PROBLEMS.put("dbcp", Pools::dbcp);
        PROBLEMS.put("c3p0", Pools::c3p0);
        PROBLEMS.put("druid", Pools::druid);
        PROBLEMS.put("tomcat", Pools::tomcat);
        PROBLEMS.put("httpclient5", Pools::httpclient5);
        PROBLEMS.put("jedis", Pools::jedis);
    }

    public static void main(String[] args) throws Exception {
        Class.forName(Lending.Nothing.class.getName());
        Plant.main(PROBLEMS, args);
    }
}

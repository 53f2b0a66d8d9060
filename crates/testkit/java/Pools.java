import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.logging.Logger;
import javax.sql.DataSource;

/**
 * Real connection pools without a free connection: {@code java -cp JARS Pools NAME [threads=N] [size=N]}. Needs the jars of the pools,
 * which the tests do not have: the dumps in crates/threaddump/corpus were made with it. README.md names the versions.
 */
public class Pools {
    /** A driver whose connections do nothing. */
    public static final class Nothing implements Driver {
        static {
            try {
                DriverManager.registerDriver(new Nothing());
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public Connection connect(String url, Properties info) {
            return acceptsURL(url) ? stub(Connection.class) : null;
        }

        @Override
        public boolean acceptsURL(String url) {
            return url.startsWith("jdbc:nothing:");
        }

        @Override
        public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
            return new DriverPropertyInfo[0];
        }

        @Override
        public int getMajorVersion() {
            return 1;
        }

        @Override
        public int getMinorVersion() {
            return 0;
        }

        @Override
        public boolean jdbcCompliant() {
            return false;
        }

        @Override
        public Logger getParentLogger() throws SQLFeatureNotSupportedException {
            throw new SQLFeatureNotSupportedException();
        }
    }

    static <T> T stub(Class<T> type) {
        Object proxy = Proxy.newProxyInstance(Pools.class.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
            Class<?> result = method.getReturnType();
            switch (method.getName()) {
                case "equals":
                    return self == arguments[0];
                case "hashCode":
                    return System.identityHashCode(self);
                case "toString":
                    return "stub";
                case "isValid":
                    return true;
                default:
            }
            if (result == boolean.class) {
                return false;
            } else if (result == int.class) {
                return 0;
            } else if (result == long.class) {
                return 0L;
            }
            return result.isInterface() ? stub(result) : null;
        });
        return type.cast(proxy);
    }

    /** Threads take from the source and keep what they get for so long. */
    static void use(DataSource source) throws Exception {
        take(() -> {
            try (Connection connection = source.getConnection()) {
                work();
            }
        });
    }

    static void work() throws InterruptedException {
        Thread.sleep(Plant.option("hold", 5000));
    }

    static void take(Plant.Work work) throws Exception {
        int threads = Plant.option("threads", 60);
        for (int i = 0; i < threads; i++) {
            Plant.start("http-nio-8080-exec-" + i, () -> {
                while (true) {
                    work.run();
                    Plant.DONE.incrementAndGet();
                }
            });
        }
        Plant.until("http-nio-8080-exec-", threads - 5, Plant.WAITS);
    }

    static int size() {
        return Plant.option("size", 5);
    }

    static void hikari() throws Exception {
        com.zaxxer.hikari.HikariConfig config = new com.zaxxer.hikari.HikariConfig();
        config.setJdbcUrl("jdbc:nothing:x");
        config.setMaximumPoolSize(size());
        config.setConnectionTimeout(60_000);
        use(new com.zaxxer.hikari.HikariDataSource(config));
    }

    static void dbcp() throws Exception {
        org.apache.commons.dbcp2.BasicDataSource source = new org.apache.commons.dbcp2.BasicDataSource();
        source.setUrl("jdbc:nothing:x");
        source.setMaxTotal(size());
        use(source);
    }

    static void c3p0() throws Exception {
        com.mchange.v2.c3p0.ComboPooledDataSource source = new com.mchange.v2.c3p0.ComboPooledDataSource();
        source.setJdbcUrl("jdbc:nothing:x");
        source.setMaxPoolSize(size());
        source.setInitialPoolSize(size());
        source.setMinPoolSize(size());
        use(source);
    }

    static void druid() throws Exception {
        com.alibaba.druid.pool.DruidDataSource source = new com.alibaba.druid.pool.DruidDataSource();
        source.setDriver(new Nothing());
        source.setUrl("jdbc:nothing:x");
        source.setMaxActive(size());
        use(source);
    }

    static void tomcat() throws Exception {
        org.apache.tomcat.jdbc.pool.DataSource source = new org.apache.tomcat.jdbc.pool.DataSource();
        source.setUrl("jdbc:nothing:x");
        source.setDriverClassName(Nothing.class.getName());
        source.setMaxActive(size());
        use(source);
    }

    /** Two connections to each route, and a server that never answers. */
    static void httpclient4() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        org.apache.http.impl.client.CloseableHttpClient client =
            org.apache.http.impl.client.HttpClients.custom().setMaxConnPerRoute(2).setMaxConnTotal(20).build();
        String url = "http://127.0.0.1:" + server.getLocalPort() + "/";
        take(() -> client.execute(new org.apache.http.client.methods.HttpGet(url)).close());
    }

    static void httpclient5() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager manager =
            new org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager();
        manager.setDefaultMaxPerRoute(2);
        org.apache.hc.client5.http.impl.classic.CloseableHttpClient client =
            org.apache.hc.client5.http.impl.classic.HttpClients.custom().setConnectionManager(manager).build();
        String url = "http://127.0.0.1:" + server.getLocalPort() + "/";
        take(() -> client.execute(new org.apache.hc.client5.http.classic.methods.HttpGet(url)).close());
    }

    static void jedis() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        redis.clients.jedis.JedisPoolConfig config = new redis.clients.jedis.JedisPoolConfig();
        config.setMaxTotal(size());
        redis.clients.jedis.JedisPool pool = new redis.clients.jedis.JedisPool(config, "127.0.0.1", server.getLocalPort(), 60_000);
        take(() -> {
            try (redis.clients.jedis.Jedis redis = pool.getResource()) {
                redis.ping();
            }
        });
    }

    static final Map<String, Plant.Work> PROBLEMS = new TreeMap<>();

    static {
        PROBLEMS.put("hikari", Pools::hikari);
        PROBLEMS.put("dbcp", Pools::dbcp);
        PROBLEMS.put("c3p0", Pools::c3p0);
        PROBLEMS.put("druid", Pools::druid);
        PROBLEMS.put("tomcat", Pools::tomcat);
        PROBLEMS.put("httpclient4", Pools::httpclient4);
        PROBLEMS.put("httpclient5", Pools::httpclient5);
        PROBLEMS.put("jedis", Pools::jedis);
    }

    public static void main(String[] args) throws Exception {
        Class.forName(Nothing.class.getName());
        Plant.main(PROBLEMS, args);
    }
}

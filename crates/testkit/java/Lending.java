import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Properties;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** What all programs with real pools share: a database driver that does nothing, and threads that take from a pool. */
class Lending {
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
        Object proxy = Proxy.newProxyInstance(Lending.class.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
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
        take(work, threads() - 5);
    }

    /** So many of the threads wait or sleep, once it stands. */
    static void take(Plant.Work work, int waiting) throws Exception {
        int threads = threads();
        for (int i = 0; i < threads; i++) {
            Plant.start("http-nio-8080-exec-" + i, () -> {
                while (true) {
                    work.run();
                    Plant.DONE.incrementAndGet();
                }
            });
        }
        Plant.until("http-nio-8080-exec-", waiting, Plant.WAITS);
    }

    static int size() {
        return Plant.option("size", 5);
    }

    static int threads() {
        return Plant.option("threads", 60);
    }
}

import java.util.Collections;

/** A real HikariCP with few connections for many threads: {@code java -cp JARS Hikari hikari [threads=N] [size=N] [hold=MS]}. */
public class Hikari {
    static void hikari() throws Exception {
        com.zaxxer.hikari.HikariConfig config = new com.zaxxer.hikari.HikariConfig();
        config.setJdbcUrl("jdbc:nothing:x");
        config.setMaximumPoolSize(Lending.size());
        config.setConnectionTimeout(60_000);
        Lending.use(new com.zaxxer.hikari.HikariDataSource(config));
    }

    public static void main(String[] args) throws Exception {
        Class.forName(Lending.Nothing.class.getName());
        Plant.main(Collections.singletonMap("hikari", Hikari::hikari), args);
    }
}

package demo;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** A file of settings, all of which must be there. */
final class Settings {
    private final Properties all = new Properties();

    Settings(String file) throws IOException {
        try (Reader reader = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
            all.load(reader);
        }
    }

    String text(String key) {
        String value = all.getProperty(key);
        if (value == null) {
            throw new IllegalArgumentException("the setting " + key + " is missing");
        }
        return value.trim();
    }

    int number(String key) {
        return Integer.parseInt(text(key));
    }
}

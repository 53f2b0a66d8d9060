package org.postgresql;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;

/** Stands for a JDBC driver: its name is what thread dumps show, and it reads from a socket as a driver does. */
public final class PlantedDriver {
    private final OutputStream question;
    private final InputStream answer;

    public PlantedDriver(int port) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        question = socket.getOutputStream();
        answer = socket.getInputStream();
    }

    /** Waits until the database has answered. */
    public void query() throws IOException {
        question.write(1);
        if (answer.read() < 0) {
            throw new IOException("the database is gone");
        }
    }
}

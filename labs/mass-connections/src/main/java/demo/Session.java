package demo;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/** What a proxy remembers of a client for a while: about 0.75 KB in small objects that point to each other. */
final class Session {
    private final Map<String, Object> attributes = new HashMap<>();
    private final Queue<Long> waiting = new ArrayDeque<>();
    private final List<Long> recent = new LinkedList<>();

    Session(long number) {
        attributes.put("number", number);
        attributes.put("since", System.nanoTime());
        attributes.put("token", Long.toHexString(number));
        for (long step = 0; step < 4; step++) {
            waiting.add(number + step);
            recent.add(number - step);
        }
    }
}

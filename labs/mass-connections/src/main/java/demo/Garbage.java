package demo;

/** Objects that die as soon as a message is handled. */
final class Garbage {
    private Garbage() {}

    private static final class Node {
        private final long value;
        private final Node next;

        Node(long value, Node next) {
            this.value = value;
            this.next = next;
        }
    }

    /** Makes a list of so many nodes and adds up what is in it. */
    static long sum(int nodes) {
        Node first = null;
        for (int number = 0; number < nodes; number++) {
            first = new Node(number, first);
        }
        long sum = 0;
        for (Node node = first; node != null; node = node.next) {
            sum += node.value;
        }
        return sum;
    }
}

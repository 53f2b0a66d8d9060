import com.microsoft.gctoolkit.GCToolKit;
import com.microsoft.gctoolkit.aggregator.Aggregates;
import com.microsoft.gctoolkit.aggregator.Aggregation;
import com.microsoft.gctoolkit.aggregator.Aggregator;
import com.microsoft.gctoolkit.aggregator.Collates;
import com.microsoft.gctoolkit.aggregator.EventSource;
import com.microsoft.gctoolkit.event.g1gc.G1GCPauseEvent;
import com.microsoft.gctoolkit.event.generational.GenerationalGCPauseEvent;
import com.microsoft.gctoolkit.event.jvm.JVMEvent;
import com.microsoft.gctoolkit.io.SingleGCLogFile;
import java.nio.file.Path;
import java.util.List;

/**
 * Reads a log with GCToolkit and prints how many pauses it found and their sum: the least that a user of it does.
 *
 * <p>Each source has an aggregation of its own. One that is bound to several is completed by the first source that ends, and
 * drops what the others say.
 */
public final class Toolkit {
    public static void main(String[] arguments) throws Exception {
        List<Pauses> all = List.of(new G1(), new Generational(), new Cms());
        GCToolKit toolkit = new GCToolKit();
        all.forEach(toolkit::loadAggregation);
        toolkit.analyze(new SingleGCLogFile(Path.of(arguments[0])));
        long count = all.stream().mapToLong(pauses -> pauses.count).sum();
        double seconds = all.stream().mapToDouble(pauses -> pauses.seconds).sum();
        System.out.printf(java.util.Locale.ROOT, "%d pauses, %.3f s%n", count, seconds);
        System.exit(0);
    }

    public abstract static class Pauses extends Aggregation {
        long count;
        double seconds;

        void add(JVMEvent pause) {
            count++;
            seconds += pause.getDuration();
        }

        @Override
        public boolean hasWarning() {
            return false;
        }

        @Override
        public boolean isEmpty() {
            return count == 0;
        }
    }

    @Collates(OfG1.class)
    public static final class G1 extends Pauses {}

    @Collates(OfGenerational.class)
    public static final class Generational extends Pauses {}

    @Collates(OfCms.class)
    public static final class Cms extends Pauses {}

    @Aggregates({EventSource.G1GC})
    public static final class OfG1 extends Aggregator<G1> {
        public OfG1(G1 pauses) {
            super(pauses);
            register(G1GCPauseEvent.class, pauses::add);
        }
    }

    @Aggregates({EventSource.GENERATIONAL})
    public static final class OfGenerational extends Aggregator<Generational> {
        public OfGenerational(Generational pauses) {
            super(pauses);
            register(GenerationalGCPauseEvent.class, pauses::add);
        }
    }

    @Aggregates({EventSource.CMS_PREUNIFIED})
    public static final class OfCms extends Aggregator<Cms> {
        public OfCms(Cms pauses) {
            super(pauses);
            register(GenerationalGCPauseEvent.class, pauses::add);
        }
    }
}

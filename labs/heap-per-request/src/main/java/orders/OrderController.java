package orders;

import java.util.concurrent.atomic.AtomicLong;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** Takes orders, and logs them in one of the ways that {@code --orders.log} selects. */
@RestController
public class OrderController {
    private static final Logger LOG = LoggerFactory.getLogger(OrderController.class);

    /** How an order is logged. */
    enum Log {
        /** Not at all. */
        NONE,
        /**
         * At level WARN, which is written: the line of the original experiment. Its six Chinese characters ("order request received") have the JVM
         * keep the whole text with two bytes per character.
         */
        WARN,
        /** The same in Latin-1, of which each character takes one byte. */
        LATIN1,
        /** At level DEBUG, which is not written; the text is made all the same. */
        DEBUG,
        /** At level DEBUG, and the text is made only if that level is written. */
        GUARDED
    }

    private final AtomicLong count = new AtomicLong();
    private final Log log;

    OrderController(@Value("${orders.log:NONE}") Log log) {
        this.log = log;
    }

    @PostMapping("/create")
    public String create(@RequestBody Order order) {
        switch (log) {
            case WARN:
                LOG.warn("\u6536\u5230\u63d0\u5355\u8bf7\u6c42 cnt{}:{}", count.getAndIncrement(), order);
                break;
            case LATIN1:
                LOG.warn("order request received cnt{}:{}", count.getAndIncrement(), order);
                break;
            case DEBUG:
                LOG.debug("order " + count.getAndIncrement() + ": " + order);
                break;
            case GUARDED:
                if (LOG.isDebugEnabled()) {
                    LOG.debug("order " + count.getAndIncrement() + ": " + order);
                }
                break;
            case NONE:
                break;
        }
        return "ok";
    }
}

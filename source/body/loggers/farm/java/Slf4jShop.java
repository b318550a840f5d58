import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The shop with SLF4J: for Logback and slf4j-simple. */
public class Slf4jShop {
    static final Logger log = LoggerFactory.getLogger("orders");

    static void charge(int order, int cents) {
        if (cents < 0) {
            throw new IllegalArgumentException("negative amount: " + cents);
        }
    }

    static void place(int order) {
        try {
            charge(order, -5);
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException("order " + order + " could not be charged", e);
        }
    }

    public static void main(String[] args) {
        log.info("order 1001 placed");
        log.warn("article 4711 is nearly sold out");
        log.error("card of order 1001 declined");
        try {
            place(1002);
        } catch (IllegalStateException e) {
            log.error("order 1002 failed", e);
        }
    }
}

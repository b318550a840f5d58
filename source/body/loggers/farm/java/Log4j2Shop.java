import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/** The shop with Log4j 2. */
public class Log4j2Shop {
    static final Logger log = LogManager.getLogger("orders");

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
        log.fatal("no connection to the bank");
    }
}

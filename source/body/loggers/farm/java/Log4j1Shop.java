import org.apache.log4j.BasicConfigurator;
import org.apache.log4j.Logger;

/** The shop with Log4j 1.2, with BasicConfigurator if there is an argument. */
public class Log4j1Shop {
    static final Logger log = Logger.getLogger("orders");

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
        if (args.length > 0) {
            BasicConfigurator.configure();
        }
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

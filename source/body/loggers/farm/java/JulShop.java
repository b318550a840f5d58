import java.util.logging.Level;
import java.util.logging.Logger;

/** The shop with java.util.logging. */
public class JulShop {
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
        log.info("order 1001 placed");
        log.warning("article 4711 is nearly sold out");
        log.severe("card of order 1001 declined");
        try {
            place(1002);
        } catch (IllegalStateException e) {
            log.log(Level.SEVERE, "order 1002 failed", e);
        }
    }
}

/** A program that ends by an exception. */
public class ExceptionShop {
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
        System.err.println("placing order 1002");
        place(1002);
    }
}

/** A program that asks for the collection of garbage. */
public class GcShop {
    public static void main(String[] args) {
        System.gc();
    }
}

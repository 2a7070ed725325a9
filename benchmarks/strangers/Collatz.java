import java.util.stream.LongStream;

/** The longest chain of Collatz below a bound, by a parallel stream. */
public class Collatz {
    static long steps(long n) {
        long count = 0;
        for (; n != 1; count++) n = (n & 1) == 0 ? n >> 1 : 3 * n + 1;
        return count;
    }

    public static void main(String[] given) {
        long bound = Long.parseLong(given[0]);
        System.out.println(LongStream.range(1, bound).parallel().map(Collatz::steps).max().getAsLong());
    }
}

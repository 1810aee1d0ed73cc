import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** Runs long enough that HotSpot compiles its loops and collects garbage. */
public class Job {
    interface Shape { double area(); }
    record Square(double side) implements Shape { public double area() { return side * side; } }
    record Circle(double radius) implements Shape { public double area() { return Math.PI * radius * radius; } }

    static int sieve(int limit) {
        boolean[] composite = new boolean[limit + 1];
        int count = 0;
        for (int i = 2; i <= limit; i++) {
            if (composite[i]) continue;
            count++;
            for (long j = (long) i * i; j <= limit; j += i) composite[(int) j] = true;
        }
        return count;
    }

    static int depth(int n) { return depth(n + 1) + 1; }

    public static void main(String[] args) throws Exception {
        System.out.println(sieve(500_000) + " primes");
        List<Shape> shapes = new ArrayList<>();
        for (int i = 0; i < 50_000; i++) shapes.add(i % 3 == 0 ? new Square(i % 100) : new Circle(i % 50));
        double total = 0;
        for (Shape shape : shapes) total += shape.area();
        System.out.printf("%.3f%n", total);
        Map<String, Integer> count = new HashMap<>();
        for (int i = 0; i < 100_000; i++) count.merge("key" + i % 1000, i, Integer::sum);
        System.out.println(count.get("key7") + " " + count.size());
        System.out.println(IntStream.range(0, 100_000).parallel().mapToLong(i -> (long) i * i).sum());
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> futures = new ArrayList<>();
        for (int i = 1; i <= 4; i++) { int n = i * 10_000; futures.add(pool.submit(() -> sieve(n))); }
        for (Future<Integer> future : futures) System.out.println(future.get());
        pool.shutdown();
        Object lost = null;
        for (int i = 0; i < 20_000; i++) lost = new int[256];
        try { lost = ((Object[]) (Object) new String[1])[1]; } catch (ArrayIndexOutOfBoundsException e) { System.out.println("caught " + e.getMessage()); }
        String none = args.length == 0 ? null : "";
        try { System.out.println(none.length()); } catch (NullPointerException e) { System.out.println("caught null"); }
        try { depth(0); } catch (StackOverflowError e) { System.out.println("caught overflow"); }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.err.println("ends with 0");
    }
}

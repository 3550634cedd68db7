import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tells on standard output when the first record came, one in the middle, and the last one. Each line begins a new one:
 * what logs to standard output may have left one open.
 */
final class Progress {
    private final AtomicLong n = new AtomicLong();
    private final long middle;
    private final long total;

    Progress(long middle, long total) {
        this.middle = middle;
        this.total = total;
    }

    void seen() {
        long i = n.incrementAndGet();
        if (i == 1) {
            say("first");
        }
        if (i == middle) {
            say("middle");
        }
        if (i == total) {
            say("last");
        }
    }

    void end() {
        System.out.println("\n@ processed " + n.get());
        System.out.flush();
    }

    private static void say(String what) {
        Instant now = Instant.now();
        System.out.println("\n@ " + what + " " + (now.getEpochSecond() * 1_000_000_000L + now.getNano()));
        System.out.flush();
    }
}

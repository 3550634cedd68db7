import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;

/** Tells on standard output when the first record came, half of them had, and the last one. */
final class Progress {
    private final AtomicLong n = new AtomicLong();
    private final long total;

    Progress(long total) {
        this.total = total;
    }

    void seen() {
        long i = n.incrementAndGet();
        if (i == 1) {
            say("first");
        }
        if (i == total / 2) {
            say("half");
        }
        if (i == total) {
            say("last");
        }
    }

    void end() {
        System.out.println("@ processed " + n.get());
        System.out.flush();
    }

    private static void say(String what) {
        Instant now = Instant.now();
        System.out.println("@ " + what + " " + (now.getEpochSecond() * 1_000_000_000L + now.getNano()));
        System.out.flush();
    }
}

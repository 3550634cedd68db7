import com.fasterxml.jackson.core.type.TypeReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The Nexmark queries 0 to 8: the same plans as those of package nexmark, with the same results. */
final class Nexmark {
    public static final class Person {
        public long id;
        public String name;
        public String emailAddress;
        public String creditCard;
        public String city;
        public String state;
        public long dateTime;
        public String extra;
    }

    public static final class Auction {
        public long id;
        public String itemName;
        public String description;
        public long initialBid;
        public long reserve;
        public long dateTime;
        public long expires;
        public long seller;
        public long category;
        public String extra;
    }

    public static final class Bid {
        public long auction;
        public long bidder;
        public long price;
        public String channel;
        public String url;
        public long dateTime;
        public String extra;

        static final Comparator<Bid> ORDER = Comparator.<Bid>comparingLong(b -> b.dateTime).thenComparingLong(b -> b.auction)
            .thenComparingLong(b -> b.bidder).thenComparing(b -> b.extra);
    }

    public static final class Price {
        public long auction;
        public long price;

        static Price of(Bid b) {
            Price p = new Price();
            p.auction = b.auction;
            p.price = b.price;
            return p;
        }
    }

    public static final class Offer {
        public String name;
        public String city;
        public String state;
        public long auction;

        static Offer of(Auction a, Person p) {
            Offer o = new Offer();
            o.name = p.name;
            o.city = p.city;
            o.state = p.state;
            o.auction = a.id;
            return o;
        }
    }

    public static final class Hot {
        public long bids;
        public List<Long> auctions = new ArrayList<>();

        static Hot of(long auction, long bids) {
            Hot h = new Hot();
            h.bids = bids;
            h.auctions.add(auction);
            return h;
        }

        Hot better(Hot o) {
            if (bids != o.bids) {
                return bids > o.bids ? this : o;
            }
            Hot h = new Hot();
            h.bids = bids;
            h.auctions = Stream.concat(auctions.stream(), o.auctions.stream()).sorted().toList();
            return h;
        }
    }

    public static final class High {
        public long price;
        public List<Bid> bids = new ArrayList<>();

        static High of(Bid b) {
            High h = new High();
            h.price = b.price;
            h.bids.add(b);
            return h;
        }

        High better(High o) {
            if (price != o.price) {
                return price > o.price ? this : o;
            }
            High h = new High();
            h.price = price;
            h.bids = Stream.concat(bids.stream(), o.bids.stream()).sorted(Bid.ORDER).toList();
            return h;
        }
    }

    public static final class Seller {
        public String name = "";
        public long opened;
    }

    public static final class Sale {
        public long auction;
        public long category;
        public long seller;
        public long expires;
        public long price;

        static final Comparator<Sale> LATER = Comparator.<Sale>comparingLong(s -> -s.expires).thenComparingLong(s -> -s.auction);

        static Sale of(Bid b, Auction a) {
            Sale s = new Sale();
            s.auction = a.id;
            s.category = a.category;
            s.seller = a.seller;
            s.expires = a.expires;
            s.price = a.dateTime < b.dateTime && b.dateTime <= a.expires ? b.price : 0;
            return s;
        }
    }

    public static final class Mean {
        public long sum;
        public long n;

        Mean add(long price, long by) {
            Mean m = new Mean();
            m.sum = sum + by * price;
            m.n = n + by;
            return m;
        }
    }

    private static final Duration GRACE = Duration.ofSeconds(4);
    private static final Duration LONG_GRACE = Duration.ofHours(24);
    private static final Duration TEN_SECONDS = Duration.ofSeconds(10);

    private static final Serde<Long> LONG = Serdes.Long();
    private static final Serde<Person> PERSON = Json.of(Person.class);
    private static final Serde<Auction> AUCTION = Json.of(Auction.class);
    private static final Serde<Bid> BID = Json.of(Bid.class);
    private static final Serde<Sale> SALE = Json.of(Sale.class);

    private final StreamsBuilder builder;
    private final String[] topics; // persons, auctions, bids
    private final String out;
    private final Progress progress;

    private Nexmark(StreamsBuilder builder, Map<String, String> spec, Progress progress) {
        this.builder = builder;
        this.topics = spec.get("in").split(",");
        this.out = spec.get("out");
        this.progress = progress;
    }

    static void build(StreamsBuilder builder, Map<String, String> spec, Progress progress) {
        Nexmark n = new Nexmark(builder, spec, progress);
        switch (spec.get("job")) {
            case "q0" -> n.bids().to(n.out, Produced.with(LONG, BID));
            case "q1" -> n.bids().mapValues(Nexmark::inEuros).to(n.out, Produced.with(LONG, BID));
            case "q2" -> n.bids().filter((k, b) -> b.auction % 123 == 0).mapValues(Price::of)
                .to(n.out, Produced.with(LONG, Json.of(Price.class)));
            case "q3" -> n.q3();
            case "q4" -> n.q4();
            case "q5" -> n.q5();
            case "q6" -> n.q6();
            case "q7" -> n.q7();
            case "q8" -> n.q8();
            default -> throw new IllegalArgumentException("there is no query " + spec.get("job"));
        }
    }

    private KStream<Long, Person> persons() {
        return builder.stream(topics[0], Consumed.with(LONG, PERSON)).peek((k, v) -> progress.seen());
    }

    private KStream<Long, Auction> auctions() {
        return builder.stream(topics[1], Consumed.with(LONG, AUCTION)).peek((k, v) -> progress.seen());
    }

    private KStream<Long, Bid> bids() {
        return builder.stream(topics[2], Consumed.with(LONG, BID)).peek((k, v) -> progress.seen());
    }

    private static Bid inEuros(Bid b) {
        b.price = b.price * 908 / 1000;
        return b;
    }

    private static <V> Materialized<Long, V, KeyValueStore<Bytes, byte[]>> rows(String name, Serde<V> serde) {
        return Materialized.<Long, V, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(LONG).withValueSerde(serde);
    }

    private void q3() {
        Set<String> nearby = Set.of("OR", "ID", "CA");
        KTable<Long, Person> people = persons().filter((k, p) -> nearby.contains(p.state)).toTable(rows("people", PERSON));
        auctions().filter((k, a) -> a.category == 10).toTable(rows("items", AUCTION))
            .join(people, a -> a.seller, Offer::of, rows("offers", Json.of(Offer.class)))
            .toStream().to(out, Produced.with(LONG, Json.of(Offer.class)));
    }

    private KTable<Long, Sale> sales() {
        KTable<Long, Auction> auctions = auctions().toTable(rows("auction-rows", AUCTION));
        return bids().join(auctions, Sale::of, Joined.with(LONG, BID, AUCTION))
            .filter((k, s) -> s.price > 0)
            .groupByKey(Grouped.with(LONG, SALE))
            .reduce((a, b) -> b.price > a.price ? b : a, rows("sales", SALE));
    }

    private void q4() {
        sales().groupBy((k, s) -> KeyValue.pair(s.category, s.price), Grouped.with(LONG, LONG))
            .aggregate(Mean::new, (k, price, m) -> m.add(price, 1), (k, price, m) -> m.add(price, -1), rows("means", Json.of(Mean.class)))
            .toStream().mapValues(m -> m.sum / Math.max(1, m.n))
            .to(out, Produced.with(LONG, LONG));
    }

    private void q5() {
        bids().groupByKey(Grouped.with(LONG, BID))
            .windowedBy(TimeWindows.ofSizeAndGrace(TEN_SECONDS, GRACE).advanceBy(Duration.ofSeconds(2)))
            .emitStrategy(EmitStrategy.onWindowClose())
            .count(Materialized.<Long, Long, WindowStore<Bytes, byte[]>>as("bids-of-window").withKeySerde(LONG).withValueSerde(LONG))
            .toStream().map((w, count) -> KeyValue.pair(w.window().start(), Hot.of(w.key(), count)))
            .groupByKey(Grouped.with(LONG, Json.of(Hot.class)))
            .reduce(Hot::better, rows("hottest", Json.of(Hot.class)))
            .toStream().to(out, Produced.with(LONG, Json.of(Hot.class)));
    }

    private void q6() {
        Serde<List<Sale>> list = Json.of(new TypeReference<List<Sale>>() {});
        sales().groupBy((k, s) -> KeyValue.pair(s.seller, s), Grouped.with(LONG, SALE))
            .aggregate(ArrayList::new, Nexmark::with, Nexmark::without, rows("sales-of-sellers", list))
            .toStream().mapValues(Nexmark::lastTen)
            .to(out, Produced.with(LONG, LONG));
    }

    private static List<Sale> with(Long seller, Sale sale, List<Sale> all) {
        TreeSet<Sale> sorted = new TreeSet<>(Sale.LATER);
        sorted.addAll(all);
        sorted.add(sale);
        return new ArrayList<>(sorted);
    }

    private static List<Sale> without(Long seller, Sale sale, List<Sale> all) {
        List<Sale> rest = new ArrayList<>(all);
        rest.removeIf(s -> s.auction == sale.auction);
        return rest;
    }

    private static long lastTen(List<Sale> all) {
        List<Sale> last = all.subList(0, Math.min(10, all.size()));
        return last.stream().mapToLong(s -> s.price).sum() / Math.max(1, last.size());
    }

    private void q7() {
        Serde<High> high = Json.of(High.class);
        bids().groupByKey(Grouped.with(LONG, BID))
            .windowedBy(TimeWindows.ofSizeAndGrace(TEN_SECONDS, GRACE))
            .emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(High::new, (k, b, h) -> h.better(High.of(b)),
                Materialized.<Long, High, WindowStore<Bytes, byte[]>>as("highest-of-auctions").withKeySerde(LONG).withValueSerde(high))
            .toStream().map((w, h) -> KeyValue.pair(w.window().start(), h))
            .groupByKey(Grouped.with(LONG, high))
            .reduce(High::better, rows("highest", high))
            .toStream().to(out, Produced.with(LONG, high));
    }

    private void q8() {
        Serde<Seller> seller = Json.of(Seller.class);
        persons().groupByKey(Grouped.with(LONG, PERSON))
            .cogroup((Long k, Person p, Seller s) -> {
                s.name = p.name;
                return s;
            })
            .cogroup(auctions().groupBy((k, a) -> a.seller, Grouped.with(LONG, AUCTION)), (k, a, s) -> {
                s.opened++;
                return s;
            })
            .windowedBy(TimeWindows.ofSizeAndGrace(TEN_SECONDS, LONG_GRACE))
            .aggregate(Seller::new,
                Materialized.<Long, Seller, WindowStore<Bytes, byte[]>>as("newcomers").withKeySerde(LONG).withValueSerde(seller)
                    .withRetention(LONG_GRACE.plus(TEN_SECONDS)))
            .toStream().filter((w, s) -> !s.name.isEmpty() && s.opened > 0)
            .to(out, Produced.with(new WindowedSerdes.TimeWindowedSerde<>(LONG, TEN_SECONDS.toMillis()), seller));
    }
}

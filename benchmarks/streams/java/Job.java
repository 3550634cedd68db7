import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** One job of the comparison on Kafka Streams. Arguments are key=value; it runs until its standard input ends. */
public final class Job {
    private Job() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> spec = new HashMap<>();
        for (String arg : args) {
            int i = arg.indexOf('=');
            spec.put(arg.substring(0, i), arg.substring(i + 1));
        }
        Progress progress = new Progress(Long.parseLong(spec.get("middle")), Long.parseLong(spec.get("total")));
        StreamsBuilder builder = new StreamsBuilder();
        if (spec.get("job").startsWith("q")) {
            Nexmark.build(builder, spec, progress);
        } else {
            clicks(builder, spec, progress);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), config(spec));
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) {
            // whoever started us says nothing, and ends us by closing the pipe
        }
        streams.close(Duration.ofSeconds(30));
        progress.end();
        System.exit(0);
    }

    private static Properties config(Map<String, String> spec) {
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, spec.get("id"));
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, spec.get("brokers"));
        p.put(StreamsConfig.STATE_DIR_CONFIG, spec.get("dir"));
        p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, spec.get("commitMs"));
        p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, spec.get("workers"));
        p.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        p.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        if (!spec.get("cached").equals("true")) {
            p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        }
        for (String setting : spec.getOrDefault("settings", "").split(",")) {
            int i = setting.indexOf(':');
            if (i > 0) {
                p.put(setting.substring(0, i), setting.substring(i + 1));
            }
        }
        return p;
    }

    private static void clicks(StreamsBuilder builder, Map<String, String> spec, Progress progress) {
        String out = spec.get("out");
        KStream<String, String> clicks = builder.<String, String>stream(spec.get("in")).peek((k, v) -> progress.seen());
        switch (spec.get("job")) {
            case "map" -> clicks.filter((user, click) -> dear(click)).map((user, click) -> KeyValue.pair(page(click), click)).to(out);
            case "count" -> clicks.groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
                .toStream().to(out, Produced.with(Serdes.String(), Serdes.Long()));
            case "minute" -> clicks.groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(10)))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts"))
                .toStream().to(out, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000L), Serdes.Long()));
            case "latest" -> clicks.groupByKey().reduce((a, b) -> b, Materialized.as("latest"));
            case "relay" -> clicks.mapValues(v -> v).to(out);
            default -> throw new IllegalArgumentException("there is no job " + spec.get("job"));
        }
    }

    private static boolean dear(String click) {
        return Integer.parseInt(click, click.lastIndexOf(':') + 1, click.length() - 1, 10) >= 1000;
    }

    private static String page(String click) {
        int from = click.indexOf("\"url\":\"") + 7;
        return click.substring(from, click.indexOf('"', from));
    }
}

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Serdes for JSON, one reader and writer for each type. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static <T> Serde<T> of(Class<T> type) {
        return serde(MAPPER.readerFor(type), MAPPER.writerFor(type));
    }

    static <T> Serde<T> of(TypeReference<T> type) {
        return serde(MAPPER.readerFor(type), MAPPER.writerFor(type));
    }

    private static <T> Serde<T> serde(ObjectReader reader, ObjectWriter writer) {
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : writer.writeValueAsBytes(value);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            },
            (topic, bytes) -> {
                try {
                    return bytes == null ? null : reader.readValue(bytes);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
    }
}

import java.io.DataInputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.PreparedTxnState;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.internals.TransactionManager;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.InitProducerIdRequest;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.internals.ProducerIdAndEpoch;

/**
 * Two-phase commit with the Java client 4.4.0, as far as it has it. The client has the state PREPARED_TRANSACTION,
 * PreparedTxnState and the classes of InitProducerId 6; initTransactions(keepPreparedTxn), prepareTransaction and
 * completeTransaction are not public in it (KAFKA-19414). So this program sends InitProducerId 6 with the client's classes,
 * puts the answer into a producer, as Flink does, and lets the producer do the rest.
 *
 * usage: TwoPhase host:port transactional-id topic begin|commit|abort [prepared-state]
 *
 * begin writes three records, prepares, says PREPARED state, and ends without a word to the broker. commit and abort come
 * back with the transaction kept, compare with the state, and decide.
 */
public class TwoPhase {
    public static void main(String[] args) throws Exception {
        String address = args[0], id = args[1], topic = args[2];
        switch (args[3]) {
            case "begin": {
                InitProducerIdResponse r = init(address, id, false);
                KafkaProducer<String, String> producer = producer(address, id);
                TransactionManager manager = manager(producer);
                put(manager, r.data().producerId(), r.data().producerEpoch(), "READY");
                producer.beginTransaction();
                for (int i = 0; i < 3; i++) {
                    producer.send(new ProducerRecord<>(topic, "java " + i)).get();
                }
                producer.flush();
                manager.prepareTransaction();
                try {
                    producer.send(new ProducerRecord<>(topic, "late"));
                    throw new IllegalStateException("a prepared transaction takes a further record");
                } catch (IllegalStateException refused) {
                    if (refused.getMessage().startsWith("a prepared transaction")) throw refused;
                }
                ProducerIdAndEpoch p = manager.preparedTransactionState();
                System.out.println("PREPARED " + new PreparedTxnState(p.producerId + ":" + p.epoch));
                System.out.flush();
                Runtime.getRuntime().halt(0);
            }
            case "commit":
            case "abort": {
                InitProducerIdResponse r = init(address, id, true);
                PreparedTxnState ongoing = new PreparedTxnState(r.data().ongoingTxnProducerId() + ":" + r.data().ongoingTxnProducerEpoch());
                if (!ongoing.equals(new PreparedTxnState(args[4]))) {
                    throw new IllegalStateException("kept " + ongoing + ", prepared " + args[4]);
                }
                KafkaProducer<String, String> producer = producer(address, id);
                TransactionManager manager = manager(producer);
                put(manager, r.data().producerId(), r.data().producerEpoch(), "PREPARED_TRANSACTION");
                field("transactionStarted").set(manager, true);
                if (args[3].equals("commit")) producer.commitTransaction(); else producer.abortTransaction();
                // The next transaction goes on with what EndTxn gave.
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "java next")).get();
                producer.commitTransaction();
                producer.close();
                System.out.println("DONE");
                break;
            }
            default:
                throw new IllegalArgumentException(args[3]);
        }
    }

    /** Sends InitProducerId 6 on a connection of its own, and again while the answer asks for it. */
    static InitProducerIdResponse init(String address, String id, boolean keep) throws Exception {
        String[] at = address.split(":");
        short version = 6;
        InitProducerIdRequest request = new InitProducerIdRequest.Builder(new InitProducerIdRequestData()
            .setTransactionalId(id).setTransactionTimeoutMs(60000).setProducerId(-1).setProducerEpoch((short) -1)
            .setEnable2Pc(true).setKeepPreparedTxn(keep)).build(version);
        try (Socket socket = new Socket(at[0], Integer.parseInt(at[1]))) {
            for (int correlation = 1; ; correlation++) {
                ByteBuffer body = request.serializeWithHeader(new RequestHeader(ApiKeys.INIT_PRODUCER_ID, version, "two-phase", correlation));
                OutputStream out = socket.getOutputStream();
                ByteBuffer frame = ByteBuffer.allocate(4 + body.remaining()).putInt(body.remaining()).put(body);
                out.write(frame.array());
                out.flush();
                DataInputStream in = new DataInputStream(socket.getInputStream());
                byte[] answer = new byte[in.readInt()];
                in.readFully(answer);
                ByteBuffer buffer = ByteBuffer.wrap(answer);
                ResponseHeader.parse(buffer, ApiKeys.INIT_PRODUCER_ID.responseHeaderVersion(version));
                InitProducerIdResponse response = InitProducerIdResponse.parse(new ByteBufferAccessor(buffer), version);
                switch (response.error()) {
                    case NONE: return response;
                    case CONCURRENT_TRANSACTIONS: case COORDINATOR_LOAD_IN_PROGRESS: case COORDINATOR_NOT_AVAILABLE: Thread.sleep(20); continue;
                    default: throw response.error().exception("InitProducerId 6");
                }
            }
        }
    }

    static KafkaProducer<String, String> producer(String address, String id) {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("transactional.id", id);
        p.put("transaction.two.phase.commit.enable", "true");
        p.put("max.block.ms", "30000");
        p.put("key.serializer", StringSerializer.class.getName());
        p.put("value.serializer", StringSerializer.class.getName());
        return new KafkaProducer<>(p);
    }

    static TransactionManager manager(KafkaProducer<?, ?> producer) throws Exception {
        Field f = KafkaProducer.class.getDeclaredField("transactionManager");
        f.setAccessible(true);
        return (TransactionManager) f.get(producer);
    }

    static Field field(String name) throws Exception {
        Field f = TransactionManager.class.getDeclaredField(name);
        f.setAccessible(true);
        return f;
    }

    /** Gives a producer its id and epoch, as the answer to its own InitProducerId would. */
    static void put(TransactionManager manager, long producerId, short epoch, String state) throws Exception {
        synchronized (manager) {
            Method v2 = TransactionManager.class.getDeclaredMethod("maybeUpdateTransactionV2Enabled", boolean.class);
            v2.setAccessible(true);
            transition(manager, "INITIALIZING");
            field("producerIdAndEpoch").set(manager, new ProducerIdAndEpoch(producerId, epoch));
            transition(manager, state);
            field("isTransactionV2Enabled").setBoolean(manager, true);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void transition(TransactionManager manager, String to) throws Exception {
        Class<? extends Enum> states = (Class<? extends Enum>) Class.forName("org.apache.kafka.clients.producer.internals.TransactionManager$State");
        Method m = TransactionManager.class.getDeclaredMethod("transitionTo", states);
        m.setAccessible(true);
        m.invoke(manager, Enum.valueOf(states, to));
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.DeliveryMode;
import javax.jms.IllegalStateException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ResourceAllocationException;
import javax.jms.Session;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ProducerInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What stops producers, and what never does. A limit of 20 kb lets five messages in. */
@Timeout(120)
class FlowControlTest {
    private static final int FIT = 5;
    private static final String BODY = "x".repeat(4000);

    @RegisterExtension static final Broker broker = Broker.with("flow-control.xml");

    /** Someone who sends until all is sent, or it fails. */
    private static final class Sender implements AutoCloseable {
        final Client client;
        final AtomicInteger sent = new AtomicInteger();
        private final Thread thread;
        private volatile Throwable failure;

        Sender(Client client, String name, int n, int mode) throws JMSException {
            this.client = client;
            Session s = client.auto();
            MessageProducer p = Client.producer(s, name);
            p.setDeliveryMode(mode);
            thread = new Thread(() -> {
                try {
                    for (int i = 0; i < n; i++) {
                        p.send(message(s, name, i));
                        sent.incrementAndGet();
                    }
                } catch (Throwable e) {
                    failure = e;
                }
            });
            thread.start();
        }

        /** Waits until so many are sent, and sees that it stays so. */
        void stopsAt(int n) throws InterruptedException {
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000; sent.get() < n && System.nanoTime() < end; ) {
                Thread.sleep(10);
            }
            Thread.sleep(Mail.QUIET);
            assertEquals(n, sent.get(), () -> "sent; " + failure);
            assertTrue(thread.isAlive(), () -> "it has ended: " + failure);
        }

        void ends(int n) throws InterruptedException {
            thread.join(3 * Mail.SOON);
            assertFalse(thread.isAlive(), "still waits");
            assertEquals(n, sent.get(), () -> "sent; " + failure);
        }

        @Override
        public void close() throws JMSException {
            Client.abandon(client.connection);
        }
    }

    /** Sends what a destination has room for, and gives the producer. */
    private static MessageProducer fill(Session s, String name) throws JMSException {
        MessageProducer p = Client.producer(s, name);
        fill(p, s, name);
        return p;
    }

    private static void fill(MessageProducer p, Session s, String name) throws JMSException {
        for (int i = 0; i < FIT; i++) {
            p.send(message(s, name, i));
        }
    }

    private static Message message(Session s, String name, int i) throws JMSException {
        Message m = Mail.text(s, name, BODY);
        m.setIntProperty("n", i);
        return m;
    }

    /** Takes n messages in their order. */
    private static void take(MessageConsumer c, int n) throws JMSException {
        for (int i = 0; i < n; i++) {
            assertEquals(i, Mail.must(c).getIntProperty("n"));
        }
    }

    private static void take(String name, int n) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            take(Client.consumer(c.auto(), name), n);
        }
    }

    @Test
    void synchronous_send_waits() throws Exception {
        String queue = Mail.unique("wait");
        try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(true)).open(), queue, 8, DeliveryMode.PERSISTENT)) {
            s.stopsAt(FIT);
            take(queue, 8);
            s.ends(8);
        }
    }

    /** jms.sendTimeout: a send that waits longer fails at the client; the message goes in when there is room, and the connection goes on. */
    @Test
    void time_limit_of_the_client() throws Exception {
        String queue = Mail.unique("wait");
        try (Client c = Client.to(broker.url()).factory(f -> f.setSendTimeout(500)).open()) {
            Session s = c.auto();
            ActiveMQMessageProducer p = (ActiveMQMessageProducer) Client.producer(s, queue);
            p.setSendTimeout(0); // none
            fill(p, s, queue);
            p.setSendTimeout(c.connection.getSendTimeout());
            assertThrows(JMSException.class, () -> p.send(message(s, queue, FIT)));
            p.setSendTimeout(0);
            take(queue, FIT + 1);
            p.send(message(s, queue, 0));
            take(queue, 1);
        }
    }

    @Test
    void producer_window() throws Exception {
        String queue = Mail.unique("wait");
        try (Sender s = new Sender(Client.to(broker.url()).factory(f -> {
            f.setUseAsyncSend(true);
            f.setProducerWindowSize(10_000);
        }).open(), queue, 20, DeliveryMode.PERSISTENT)) {
            s.stopsAt(FIT + 2); // and what fits in the window
            take(queue, 20);
            s.ends(20);
        }
    }

    /** What is sent without waiting is taken in up to a bound; then the connection is not read. */
    @Test
    @Timeout(300)
    void asynchronous_send() throws Exception {
        String queue = Mail.unique("wait");
        int n = 12_000; // 48 MB
        try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setUseAsyncSend(true)).open(), queue, n, DeliveryMode.NON_PERSISTENT)) {
            int before;
            do {
                before = s.sent.get();
                Thread.sleep(2000);
            } while (s.sent.get() != before || before < FIT);
            assertTrue(before < n, () -> s.sent.get() + " were sent");
            take(queue, n);
            s.ends(n);
        }
    }

    @Test
    void commit_waits() throws Exception {
        String queue = Mail.unique("wait");
        Mail.send(broker.url(), queue, BODY, BODY, BODY, BODY, BODY);
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            Thread commit = new Thread(() -> {
                try {
                    for (int i = 0; i < 3; i++) {
                        p.send(message(s, queue, i));
                    }
                    s.commit();
                } catch (JMSException e) {
                    throw new AssertionError(e);
                }
            });
            commit.start();
            commit.join(Mail.QUIET);
            assertTrue(commit.isAlive(), "it was committed");
            try (Client k = Client.open(broker.url())) {
                MessageConsumer consumer = Client.consumer(k.auto(), queue);
                for (int i = 0; i < FIT; i++) {
                    Mail.must(consumer);
                }
                take(consumer, 3);
            }
            commit.join(Mail.SOON);
            assertFalse(commit.isAlive(), "it still waits");
        }
    }

    /** An entry's own sendFailIfNoSpace does nothing for a memoryLimit in 5.17; that of systemUsage does this. */
    @Test
    @Reference.Beyond("an entry goes before systemUsage")
    void refused() throws Exception {
        String queue = Mail.unique("fail");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = fill(s, queue);
            assertThrows(ResourceAllocationException.class, () -> p.send(message(s, queue, FIT)));
            take(queue, FIT);
            p.send(message(s, queue, 0));
            take(queue, 1);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @Reference.Beyond("an entry goes before systemUsage")
    void refused_in_a_transaction(boolean sync) throws Exception {
        String queue = Mail.unique("fail");
        BlockingQueue<Exception> told = new LinkedBlockingQueue<>();
        try (Client c = Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(sync)).open()) {
            c.connection.setExceptionListener(told::add);
            Session s = c.transacted();
            MessageProducer p = fill(s, queue);
            if (sync) {
                assertThrows(ResourceAllocationException.class, () -> p.send(message(s, queue, FIT)));
                s.commit();
                take(queue, FIT);
                return;
            }
            p.send(message(s, queue, FIT));
            assertThrows(JMSException.class, s::commit);
            assertEquals(ResourceAllocationException.class, told.poll(Mail.SOON, TimeUnit.MILLISECONDS).getClass());
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    @Test
    @Reference.Beyond("an entry goes before systemUsage")
    void refused_after_a_time() throws Exception {
        String queue = Mail.unique("time");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = fill(s, queue);
            long start = System.nanoTime();
            assertThrows(ResourceAllocationException.class, () -> p.send(message(s, queue, FIT)));
            assertTrue(System.nanoTime() - start >= 1_000_000_000L, "too early");
        }
    }

    /** The acknowledgements that make room come behind the messages that wait for it. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @Reference.Beyond("ActiveMQ stops reading the connection")
    void producer_and_consumer_on_one_connection(boolean async) throws Exception {
        String queue = Mail.unique("wait");
        try (Client c = Client.to(broker.url()).factory(f -> {
            f.setUseAsyncSend(async);
            f.setAlwaysSyncSend(!async);
        }).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            Sender s = new Sender(c, queue, 50, DeliveryMode.NON_PERSISTENT);
            take(consumer, 50);
            s.ends(50);
        }
    }

    /** A connection with much of its own on the way has to be read, whatever its limits. */
    @Test
    @Reference.Beyond("ActiveMQ stops reading the connection")
    void much_on_one_connection() throws Exception {
        String queue = Mail.unique("wait");
        int n = 10_000;
        try (Client c = Client.to(broker.url()).factory(f -> f.setUseAsyncSend(true)).prefetch(1).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            Sender s = new Sender(c, queue, n, DeliveryMode.NON_PERSISTENT);
            s.ends(n);
            take(consumer, n);
        }
    }

    @ParameterizedTest
    @CsvSource({"store,PERSISTENT", "store,NON_PERSISTENT", "free,PERSISTENT", "free,NON_PERSISTENT"})
    void never_stopped(String stem, String mode) throws Exception {
        String queue = Mail.unique(stem);
        int m = mode.equals("PERSISTENT") ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
        try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(true)).open(), queue, 20, m)) {
            s.ends(20);
            take(queue, 20);
        }
    }

    @Test
    void slow_topic_subscriber() throws Exception {
        String topic = "topic://" + Mail.unique("news");
        try (Client c = Client.open(broker.url())) {
            MessageConsumer slow = Client.consumer(c.auto(), topic + "?consumer.prefetchSize=1");
            MessageConsumer fast = Client.consumer(c.auto(), topic);
            try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(true)).open(), topic, 10, DeliveryMode.NON_PERSISTENT)) {
                s.stopsAt(1 + FIT); // one was handed out
                take(slow, 10);
                s.ends(10);
                take(fast, 10);
            }
        }
    }

    @Test
    void connection_can_be_closed_while_a_send_waits() throws Exception {
        String queue = Mail.unique("wait");
        try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(true)).open(), queue, 8, DeliveryMode.PERSISTENT)) {
            s.stopsAt(FIT);
            s.client.connection.close();
            s.ends(FIT);
        }
        try (Client c = Client.open(broker.url())) {
            take(Client.consumer(c.auto(), queue), FIT);
        }
    }

    @Test
    void destinations_of_a_policy() throws Exception {
        String stem = "few.";
        Mail.send(broker.url(), stem + 1, "a");
        Mail.send(broker.url(), stem + 2, "a");
        assertThrows(IllegalStateException.class, () -> Mail.send(broker.url(), stem + 3, "a"));
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            assertThrows(IllegalStateException.class, () -> Client.consumer(s, stem + 4));
        }
        Mail.send(broker.url(), stem + 2, "b");
    }

    @Test
    void advisories() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("wait"));
        BlockingQueue<ActiveMQMessage> full = new LinkedBlockingQueue<>();
        BlockingQueue<ActiveMQMessage> fast = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            c.auto().createConsumer(AdvisorySupport.getFullAdvisoryTopic(queue)).setMessageListener(m -> full.add((ActiveMQMessage) m));
            c.auto().createConsumer(AdvisorySupport.getFastProducerAdvisoryTopic(queue)).setMessageListener(m -> fast.add((ActiveMQMessage) m));
            try (Sender s = new Sender(Client.to(broker.url()).factory(f -> f.setAlwaysSyncSend(true)).open(), queue.getPhysicalName(), 8, DeliveryMode.PERSISTENT)) {
                s.stopsAt(FIT);
                ActiveMQMessage told = full.poll(Mail.SOON, TimeUnit.MILLISECONDS);
                assertNotNull(told, "nothing told that the queue is full");
                assertTrue(told.getStringProperty("usageName").contains(queue.getQualifiedName() + ":memory"), told.getStringProperty("usageName"));
                assertTrue(told.getLongProperty("usageCount") >= 20 * 1024, told.getStringProperty("usageCount"));
                told = fast.poll(Mail.SOON, TimeUnit.MILLISECONDS);
                assertNotNull(told, "nothing told of the fast producer");
                assertEquals(told.getStringProperty("producerId"), ((ProducerInfo) told.getDataStructure()).getProducerId().toString());
                take(queue.getPhysicalName(), 8);
                s.ends(8);
            }
        }
    }
}

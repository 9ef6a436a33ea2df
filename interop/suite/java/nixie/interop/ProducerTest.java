package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URL;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.InvalidDestinationException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.AsyncCallback;
import org.apache.activemq.BlobMessage;
import org.apache.activemq.command.ActiveMQBlobMessage;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ways to send: synchronous, asynchronous, with a window, compressed, large, with a time to live. */
class ProducerTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** The producer window: the client waits for ProducerAcks; far more than the window goes through. */
    @ParameterizedTest
    @ValueSource(strings = {"queue", "topic"})
    void producer_window(String kind) throws Exception {
        String name = kind + "://" + Mail.unique("window");
        try (Client c = Client.to(broker.url()).factory(f -> {
            f.setProducerWindowSize(4096);
            f.setUseAsyncSend(true);
        }).open()) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, name);
            MessageProducer p = Client.producer(c.auto(), name);
            for (int i = 0; i < 100; i++) {
                p.send(s.createTextMessage("m" + i + "-".repeat(500)));
            }
            for (int i = 0; i < 100; i++) {
                assertEquals("m" + i + "-".repeat(500), Mail.next(consumer));
            }
        }
    }

    @Test
    void asynchronous_send() throws Exception {
        String queue = Mail.unique("async");
        try (Client c = Client.to(broker.url()).factory(f -> f.setUseAsyncSend(true)).open()) {
            Mail.send(c.auto(), queue, Mail.numbered(200));
        }
        List<String> got = Mail.take(broker.url(), queue, 200);
        for (int i = 0; i < 200; i++) {
            assertEquals("m" + i + "#1", got.get(i));
        }
    }

    /** A blob is kept elsewhere; the message has its URL, which a dead letter keeps. */
    @Test
    void blob() throws Exception {
        String queue = Mail.unique("blob");
        URL where = URI.create("http://127.0.0.1:1/fileserver/picture%20of%20us.png").toURL();
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            ActiveMQSession s = (ActiveMQSession) c.transacted();
            BlobMessage sent = s.createBlobMessage(where);
            sent.setStringProperty("origin", queue);
            ((ActiveMQBlobMessage) sent).setMimeType("image/png");
            Client.producer(s, queue).send(sent);
            s.commit();
            BlobMessage got = (BlobMessage) Mail.must(Client.consumer(s, queue));
            assertEquals(where, got.getURL());
            assertEquals("image/png", got.getMimeType());
            s.rollback();
        }
        assertEquals(where, ((BlobMessage) Mail.deadLetters(broker.url(), queue, 1).get(0)).getURL());
    }

    /** The client's own completion callback. */
    @Test
    void send_with_a_callback() throws Exception {
        String queue = Mail.unique("callback");
        CountDownLatch done = new CountDownLatch(20);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            ActiveMQMessageProducer p = (ActiveMQMessageProducer) Client.producer(s, queue);
            for (int i = 0; i < 20; i++) {
                p.send(s.createTextMessage("m" + i), new AsyncCallback() {
                    @Override
                    public void onSuccess() {
                        done.countDown();
                    }

                    @Override
                    public void onException(javax.jms.JMSException e) {
                        // The latch tells.
                    }
                });
            }
            assertTrue(done.await(Mail.SOON, TimeUnit.MILLISECONDS), done.getCount() + " callbacks missing");
        }
        assertEquals(20, Mail.take(broker.url(), queue, 20).size());
    }

    /** Non-persistent and persistent sends of one producer keep their order: arrival alone decides. */
    @Test
    @Reference.Beyond("ActiveMQ mixes them up")
    void mixed_modes_keep_their_order() throws Exception {
        String queue = Mail.unique("mixed");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 50; i++) {
                p.send(s.createTextMessage("m" + i), i % 3 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT, 4, 0);
            }
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 50; i++) {
                assertEquals("m" + i, Mail.next(consumer));
            }
        }
    }

    /** Compressed in, and still compressed for the receiver, which reads it like any other. */
    @ParameterizedTest
    @EnumSource(DeadLetterTest.Kind.class)
    void compression(DeadLetterTest.Kind kind) throws Exception {
        String queue = Mail.unique("compressed");
        try (Client c = Client.to(broker.url()).factory(f -> f.setUseCompression(true)).open()) {
            Session s = c.auto();
            Client.producer(s, queue).send(kind.create(s));
            Message got = Mail.must(Client.consumer(s, queue));
            boolean body = kind != DeadLetterTest.Kind.PLAIN && kind != DeadLetterTest.Kind.EMPTY_TEXT;
            assertEquals(body, ((ActiveMQMessage) got).isCompressed());
            kind.check(got);
        }
    }

    /** Bodies from nothing to 10 MB, persistent, through the store and back. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000, 65_535, 65_536, 300_000, 10_000_000})
    void sizes(int size) throws Exception {
        String queue = Mail.unique("size");
        byte[] body = new byte[size];
        for (int i = 0; i < size; i++) {
            body[i] = (byte) (i ^ i >> 8);
        }
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            BytesMessage m = s.createBytesMessage();
            m.writeBytes(body);
            Client.producer(s, queue).send(m);
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i <= 2; i++) {
                BytesMessage got = (BytesMessage) Mail.must(consumer);
                assertEquals(size, got.getBodyLength());
                byte[] back = new byte[size];
                got.readBytes(back);
                org.junit.jupiter.api.Assertions.assertArrayEquals(body, back);
                if (i == 1) {
                    s.rollback();
                }
            }
            s.commit();
        }
    }

    /** Time to live: gone after it, there before it. */
    @Test
    void time_to_live() throws Exception {
        String queue = Mail.unique("ttl");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            p.setTimeToLive(60_000);
            p.send(s.createTextMessage("long"));
            p.setTimeToLive(100);
            p.send(Mail.text(s, queue, "short"));
            Thread.sleep(300);
            assertEquals(List.of("long"), Mail.bodies(Mail.browse(s, queue, null)));
            TextMessage m = (TextMessage) Mail.must(Client.consumer(s, queue));
            assertEquals("long", m.getText());
            assertEquals(m.getJMSTimestamp() + 60_000, m.getJMSExpiration());
        }
        Mail.deadLetters(broker.url(), queue, 1);
    }

    /** A producer without a destination of its own sends anywhere. */
    @Test
    void anonymous_producer() throws Exception {
        String a = Mail.unique("a");
        String b = Mail.unique("b");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = s.createProducer(null);
            p.send(Client.destination(a), s.createTextMessage("to a"));
            p.send(Client.destination(b), s.createTextMessage("to b"));
            // 5.x throws the first, 6.x the second.
            Exception e = assertThrows(Exception.class, () -> p.send(s.createTextMessage("nowhere")));
            assertTrue(e instanceof UnsupportedOperationException || e instanceof InvalidDestinationException, e.toString());
        }
        assertEquals(List.of("to a#1"), Mail.take(broker.url(), a, 1));
        assertEquals(List.of("to b#1"), Mail.take(broker.url(), b, 1));
    }

    /** Without message ids or timestamps, as the producer may ask; and names that are not plain ASCII. */
    @ParameterizedTest
    @CsvSource({"with space", "ünïcode.世界", "a/b:c=d"})
    void odd_names(String stem) throws Exception {
        String queue = Mail.unique(stem);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = s.createProducer(s.createQueue(queue));
            p.setDisableMessageTimestamp(true);
            p.send(s.createTextMessage("m0"));
            Message m = Mail.must(s.createConsumer(s.createQueue(queue)));
            assertEquals(s.createQueue(queue), m.getJMSDestination());
            assertEquals(0, m.getJMSTimestamp());
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.jms.BytesMessage;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What connections may do, and how much: client ids that are taken over, limits, large messages. */
class ClientLifeTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** The address of a second listener with options, at a process of its own. */
    private static String second(BrokerProcess process) {
        Matcher m = Pattern.compile(" openwire=\\S+ openwire=(tcp://[^ ?]+)").matcher(process.readyLine());
        assertTrue(m.find(), process.readyLine());
        return m.group(1);
    }

    @Test
    @Reference.Beyond("ActiveMQ has an attribute of the connector instead of an option")
    void link_stealing() throws Exception {
        try (BrokerProcess own = new BrokerProcess("stealing", null, "--listen", "tcp://127.0.0.1:0?allowLinkStealing=true").start()) {
            String url = second(own);
            String id = Mail.unique("wanted");
            String queue = Mail.unique("stolen");
            Client first = Client.to(url).clientId(id).open();
            CountDownLatch lost = new CountDownLatch(1);
            first.connection.setExceptionListener(e -> lost.countDown());
            Session s = first.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer c = Client.consumer(s, queue);
            Mail.send(url, queue, "m0");
            assertEquals("m0", Mail.next(c));
            try (Client thief = Client.to(url).clientId(id).open()) {
                assertTrue(lost.await(20, TimeUnit.SECONDS), "the first was not ended");
                assertEquals("m0", Mail.next(Client.consumer(thief.auto(), queue)));
            }
            Client.abandon(first.connection);
        }
    }

    @Test
    @Reference.Beyond("needs a second listener")
    void maximum_connections() throws Exception {
        try (BrokerProcess own = new BrokerProcess("limited", null, "--listen", "tcp://127.0.0.1:0?maximumConnections=3").start()) {
            String url = second(own);
            List<Client> open = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                open.add(Client.to(url).open());
            }
            assertThrows(JMSException.class, () -> Client.to(url).open());
            open.remove(0).close();
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000; ; Thread.sleep(50)) { // the place is free a little later
                try {
                    open.add(Client.to(url).open());
                    break;
                } catch (JMSException e) {
                    assertTrue(System.nanoTime() < end, "no connection although there is a place: " + e);
                }
            }
            for (Client c : open) {
                c.close();
            }
        }
    }

    /** Everything is asked for at once, or nothing is waited for: the messages are the same, in order. */
    @ParameterizedTest
    @ValueSource(strings = {"jms.alwaysSyncSend=true", "jms.useAsyncSend=true", "jms.dispatchAsync=false", "jms.alwaysSessionAsync=false",
        "jms.optimizeAcknowledge=true", "jms.copyMessageOnSend=false", "jms.prefetchPolicy.all=1", "jms.useCompression=true",
        "wireFormat.tightEncodingEnabled=false", "wireFormat.cacheEnabled=false", "jms.watchTopicAdvisories=false"})
    void connection_options(String option) throws Exception {
        String queue = Mail.unique("options");
        try (Client c = Client.open(broker.url() + "?" + option)) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.send(s, queue, Mail.numbered(50));
            s.commit();
            for (int i = 0; i < 50; i++) {
                assertEquals("m" + i, Mail.next(consumer));
            }
            s.rollback();
            for (int i = 0; i < 50; i++) {
                assertEquals("m" + i + "#2!", Mail.label(Mail.must(consumer)));
            }
            s.commit();
            Mail.none(consumer);
        }
    }

    /** A broker that is stopped with clients connected ends at once; what they had is not counted as failed (R-CNT-07). */
    @Test
    @Reference.Beyond("R-CNT-07: the broker counts what it takes back when it stops")
    void clean_shutdown() throws Exception {
        try (BrokerProcess own = Broker.own("shutdown")) {
            String queue = Mail.unique("shutdown");
            Client c = Client.open(own.url());
            CountDownLatch lost = new CountDownLatch(1);
            c.connection.setExceptionListener(e -> lost.countDown());
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.send(own.url(), queue, Mail.numbered(3));
            assertEquals("m0", Mail.next(consumer));
            long begin = System.nanoTime();
            assertEquals(0, own.terminate());
            assertTrue(System.nanoTime() - begin < 15_000_000_000L, "the broker took long to stop"); // it gives up after 30 s
            assertTrue(lost.await(Mail.SOON, TimeUnit.MILLISECONDS), "the client was not told");
            Client.abandon(c.connection);
            own.start();
            List<String> bodies = new ArrayList<>();
            for (String label : Mail.take(own.url(), queue, 3)) {
                bodies.add(label.substring(0, 2));
                assertTrue(label.endsWith("#1") || label.endsWith("#2!"), label);
            }
            assertEquals(List.of("m0", "m1", "m2"), bodies);
        }
    }

    /** Five thousand connections at once, of which some consume; all are served, and the broker still takes the next. */
    @Test
    @Reference.Beyond("one ActiveMQ of 512 MiB has no room for as many threads")
    void five_thousand_connections() throws Exception {
        int n = 5000;
        String queue = Mail.unique("crowd");
        ExecutorService many = Executors.newFixedThreadPool(20);
        List<Client> all = new ArrayList<>();
        try {
            List<Future<Client>> opening = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                opening.add(many.submit(() -> Client.to(broker.url() + "?wireFormat.maxInactivityDuration=0&ioBufferSize=1024")
                    .factory(f -> f.setWatchTopicAdvisories(false)).open()));
            }
            for (Future<Client> c : opening) {
                all.add(c.get());
            }
            List<MessageConsumer> consumers = new ArrayList<>();
            Session s = all.get(n - 1).auto();
            for (int i = 0; i < n; i += 50) {
                consumers.add(Client.consumer(all.get(i).auto(), queue + "." + i));
                Mail.send(s, queue + "." + i, "m" + i);
            }
            for (int i = 0; i < n; i += 50) {
                assertEquals("m" + i, Mail.next(consumers.get(i / 50)));
            }
            Mail.send(broker.url(), queue, "one more");
        } finally {
            for (Client c : all) {
                many.submit(() -> {
                    c.close();
                    return null;
                });
            }
            many.shutdown();
            assertTrue(many.awaitTermination(60, TimeUnit.SECONDS), "they are not all closed");
        }
        assertEquals(List.of("one more#1"), Mail.take(broker.url(), queue, 1));
    }

    /** 64 MiB, which comes as it went, also after a rollback. */
    @Test
    void very_large() throws Exception {
        String queue = Mail.unique("large");
        int size = 64 << 20;
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            Session s = c.auto();
            BytesMessage m = s.createBytesMessage();
            byte[] piece = new byte[1 << 20];
            for (int i = 0; i < size; i += piece.length) {
                piece[0] = (byte) (i >> 20);
                m.writeBytes(piece);
            }
            Client.producer(s, queue).send(m);
        }
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int attempt = 0; attempt < 2; attempt++) {
                Message got = Mail.must(consumer);
                assertEquals(size, ((BytesMessage) got).getBodyLength());
                byte[] piece = new byte[1 << 20];
                for (int i = 0; i < size; i += piece.length) {
                    assertEquals(piece.length, ((BytesMessage) got).readBytes(piece));
                    assertEquals((byte) (i >> 20), piece[0]);
                }
                if (attempt == 0) {
                    s.rollback();
                } else {
                    s.commit();
                }
            }
            Mail.none(consumer);
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Transports and their options: limits of failover, half-dead connections, fanout, discovery, nio. */
class TransportTest {
    private static final String QUICK = "?initialReconnectDelay=10&maxReconnectDelay=50&useExponentialBackOff=false";

    @RegisterExtension static final Broker broker = Broker.plain();

    private static long millisSince(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos);
    }

    /** An address at which nobody listens. */
    private static String dead() throws Exception {
        return "tcp://127.0.0.1:" + BrokerProcess.freePort();
    }

    private static void roundTrip(Client c, String stem) throws Exception {
        String queue = Mail.unique(stem);
        Session s = c.auto();
        Mail.send(s, queue, "m0", "m1");
        assertEquals(List.of("m0#1", "m1#1"), Mail.drain(Client.consumer(s, queue), 2));
    }

    /** startupMaxReconnectAttempts, and maxReconnectAttempts at the start: connecting fails after so many attempts. */
    @ParameterizedTest
    @ValueSource(strings = {"&startupMaxReconnectAttempts=3", "&maxReconnectAttempts=3", "&startupMaxReconnectAttempts=2&maxReconnectAttempts=-1"})
    void gives_up_at_the_start(String options) throws Exception {
        long begin = System.nanoTime();
        assertThrows(JMSException.class, () -> Client.open("failover:(" + dead() + ")" + QUICK + options));
        assertTrue(millisSince(begin) < Mail.SOON, "after " + millisSince(begin) + " ms");
        try (Client c = Client.open("failover:(" + dead() + "," + broker.url() + ")" + QUICK + options)) {
            roundTrip(c, "startup");
        }
    }

    /** maxReconnectAttempts: a broker that does not come back ends the connection, and the application hears of it. */
    @Test
    void gives_up_after_the_connection() throws Exception {
        try (BrokerProcess own = Broker.own("gives-up")) {
            String queue = Mail.unique("gives-up");
            Mail.send(own.url(), queue, "m0");
            Client c = Client.open("failover:(" + own.url() + ")" + QUICK + "&maxReconnectAttempts=3");
            CountDownLatch heard = new CountDownLatch(1);
            c.connection.setExceptionListener(e -> heard.countDown());
            Session s = c.transacted();
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, queue))));
            own.kill();
            assertTrue(heard.await(Mail.SOON, TimeUnit.MILLISECONDS), "the exception listener is told");
            assertThrows(JMSException.class, () -> Mail.send(s, queue, "m1"));
            Client.abandon(c.connection);
            own.start();
            assertEquals(List.of(Reference.or("m0#2!", "m0#1")), Mail.take(own.url(), queue, 1));
        }
    }

    /** timeout: a send does not wait for a broker without end, and what it could not send is not sent later. */
    @Test
    void timeout_of_a_send() throws Exception {
        try (BrokerProcess own = Broker.own("timeout"); Client c = patiently("failover:(" + own.url() + ")" + QUICK + "&timeout=600")) {
            String queue = Mail.unique("timeout");
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            p.send(Mail.text(s, queue, "m0"));
            CountDownLatch noticed = c.noticesCut();
            CountDownLatch back = c.noticesReturn();
            own.kill();
            assertTrue(noticed.await(Mail.SOON, TimeUnit.MILLISECONDS)); // what is under way by then waits, whatever the option says
            long begin = System.nanoTime();
            assertThrows(JMSException.class, () -> p.send(Mail.text(s, queue, "lost")));
            assertTrue(millisSince(begin) >= 400 && millisSince(begin) < Mail.SOON, millisSince(begin) + " ms");
            own.start();
            assertTrue(back.await(Mail.SOON, TimeUnit.MILLISECONDS)); // a send does not wait for it longer than the option says
            p.send(Mail.text(s, queue, "m1"));
            assertEquals(List.of("m0#1", "m1#1"), Mail.take(own.url(), queue, 2));
        }
    }

    /** A client whose URL leaves a busy machine too little time to connect, now and then. */
    private static Client patiently(String url) throws JMSException {
        for (int i = 1; ; i++) {
            try {
                return Client.open(url);
            } catch (JMSException e) {
                if (i == 10) {
                    throw e;
                }
            }
        }
    }

    /** trackMessages: sends that nobody waits for are sent again after a cut; each is there once. */
    @Test
    void trackMessages() throws Exception {
        String queue = Mail.unique("track");
        int total = 200;
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.open("failover:(" + proxy.url() + ")" + QUICK + "&trackMessages=true&maxCacheSize=1000000&jms.useAsyncSend=true")) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < total; i++) {
                if (i % 60 == 30) {
                    proxy.cut();
                }
                p.send(Mail.text(s, queue, "m" + i));
            }
            c.auto().createQueue(queue);
            Client.producer(s, queue).send(Mail.text(s, queue, "last"));
            p.close();
            Mail.awaitDepth(broker.url(), queue, total + 1);
        }
        List<String> want = new ArrayList<>();
        for (String m : Mail.numbered(total)) {
            want.add(m + "#1");
        }
        want.add("last#1");
        List<String> got = Mail.take(broker.url(), queue, total + 1);
        List<String> missing = new ArrayList<>(want);
        missing.removeAll(got);
        assertEquals(List.of(), missing);
        assertEquals(want.size(), got.size(), "twice: " + got);
    }

    /** trackMessages: what is sent again may be of a producer, and of a session, that its client has closed. */
    @Test
    @Reference.Beyond("5.17.2 refuses them: missing producer state")
    void trackMessages_of_closed_producers() throws Exception {
        String queue = Mail.unique("track.closed");
        int total = 40;
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.open("failover:(" + proxy.url() + ")" + QUICK + "&trackMessages=true&maxCacheSize=1000000&jms.useAsyncSend=true")) {
            for (int i = 0; i < total; i++) {
                Session s = c.auto();
                MessageProducer p = Client.producer(s, queue);
                if (i % 10 == 5) {
                    proxy.freeze(); // what follows is lost on its way
                }
                p.send(Mail.text(s, queue, "m" + i));
                p.close();
                s.close();
                if (i % 10 == 5) {
                    proxy.cut();
                }
            }
            Mail.awaitDepth(broker.url(), queue, total);
        }
        List<String> got = new ArrayList<>(Mail.take(broker.url(), queue, total));
        List<String> missing = new ArrayList<>(List.of(Mail.numbered(total)));
        missing.removeIf(m -> got.contains(m + "#1"));
        assertEquals(List.of(), missing);
        assertEquals(total, got.size(), "twice: " + got);
    }

    /** jms.closeTimeout: a close does not wait for a broker that does not answer; what the consumer had comes back, and counts once. */
    @Test
    void closeTimeout() throws Exception {
        String queue = Mail.unique("close");
        Mail.send(broker.url(), queue, "m0", "m1");
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client c = Client.open(proxy.url() + "?jms.closeTimeout=500");
            Session s = c.transacted();
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, queue))));
            proxy.freeze();
            long begin = System.nanoTime();
            try {
                c.close();
            } catch (JMSException e) {
                // It says so, too.
            }
            assertTrue(millisSince(begin) < Mail.SOON, millisSince(begin) + " ms");
            proxy.cut();
            List<String> got = Mail.take(broker.url(), queue, 2);
            got.sort(null);
            assertEquals(List.of("m0#2!", "m1#2!"), got, "m1 was only prefetched: flagged, as handed out with unknown fate");
        }
    }

    /**
     * A connection that passes no more bytes and does not close. The client notices by its inactivity monitor and
     * fails over; the broker ends the old connection, or gives it to the one that comes back.
     */
    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.SESSION_TRANSACTED})
    void half_dead_connection(int mode) throws Exception {
        String queue = Mail.unique("half-dead");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open("failover:(" + proxy.url()
                + "?wireFormat.maxInactivityDuration=900&wireFormat.maxInactivityDurationInitalDelay=300," // what comes after it is not to end, too
                + broker.url() + "?wireFormat.maxInactivityDuration=0)" + QUICK + "&randomize=false")) {
            CountDownLatch noticed = c.noticesCut();
            Session s = c.session(mode);
            MessageConsumer consumer = Client.consumer(s, queue);
            proxy.freeze();
            Mail.send(broker.url(), queue, Mail.numbered(5)); // dispatched into the void
            assertTrue(noticed.await(Mail.SOON, TimeUnit.MILLISECONDS));
            for (int i = 0; i < 5; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                assertTrue(Mail.count(m) <= 2, Mail.label(m));
                if (mode == Session.SESSION_TRANSACTED) {
                    s.commit();
                }
            }
            Mail.none(consumer);
            Mail.awaitDepth(broker.url(), queue, 0);
            Mail.deadLetters(broker.url(), queue, 0);
        }
    }

    /** Without an inactivity monitor a silent connection lasts, on both sides. */
    @Test
    void without_inactivity_monitor() throws Exception {
        String queue = Mail.unique("silent");
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.open("failover:(" + proxy.url() + "?wireFormat.maxInactivityDuration=0)" + QUICK)) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            proxy.stall();
            Thread.sleep(2500);
            proxy.resume();
            Mail.send(s, queue, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            assertEquals(1, proxy.accepted());
        }
    }

    /** discovery:static and its spellings; nio. */
    @ParameterizedTest
    @ValueSource(strings = {"discovery:(static:(%1$s))?initialReconnectDelay=50", "discovery:static:(%1$s)", "discovery:(static:(%2$s,%1$s))",
        "nio://%3$s", "failover:(nio://%3$s)", "failover:%1$s", "failover://(%1$s)?jms.watchTopicAdvisories=false", "%1$s?jms.watchTopicAdvisories=false"})
    void spellings(String url) throws Exception {
        try (Client c = Client.open(String.format(url, broker.url(), dead(), broker.url().substring("tcp://".length())))) {
            roundTrip(c, "spelling");
        }
    }

    /** fanout: every broker gets what is sent. */
    @Test
    void fanout() throws Exception {
        try (BrokerProcess other = Broker.own("fanout")) {
            String queue = Mail.unique("fanout");
            String topic = Mail.unique("fanout");
            List<Client> listeners = new ArrayList<>();
            List<MessageConsumer> consumers = new ArrayList<>();
            try (Client c = Client.open("fanout:(static:(" + broker.url() + "," + other.url() + "))?fanOutQueues=true&minAckCount=2&initialReconnectDelay=10")) {
                for (String url : List.of(broker.url(), other.url())) {
                    Client l = Client.open(url);
                    listeners.add(l);
                    consumers.add(Client.consumer(l.auto(), "topic://" + topic));
                }
                Session s = c.auto();
                for (int i = 0; i < 5; i++) {
                    Mail.send(s, queue, "m" + i);
                    Mail.send(s, "topic://" + topic, "t" + i);
                }
                for (MessageConsumer consumer : consumers) {
                    for (int i = 0; i < 5; i++) {
                        assertEquals("t" + i + "#1", Mail.label(Mail.must(consumer)));
                    }
                    assertNull(consumer.receive(Mail.QUIET));
                }
            } finally {
                for (Client l : listeners) {
                    l.close();
                }
            }
            for (String url : List.of(broker.url(), other.url())) {
                assertEquals(List.of("m0#1", "m1#1", "m2#1", "m3#1", "m4#1"), Mail.take(url, queue, 5));
            }
        }
    }
}

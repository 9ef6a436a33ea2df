package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Message listeners and sessions: what an application does within a listener, stops and starts, many at once. */
class SessionTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private interface Work {
        void with(Message m) throws Exception;
    }

    /** A listener that may throw anything; what it throws, it notes. */
    private static MessageListener listener(BlockingQueue<String> seen, Work work) {
        return m -> {
            try {
                seen.add(Mail.label(m));
                work.with(m);
            } catch (Exception e) {
                seen.add("failed: " + e);
            }
        };
    }

    private static List<String> next(BlockingQueue<String> seen, int n) throws InterruptedException {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            out.add(seen.poll(Mail.SOON, TimeUnit.MILLISECONDS));
        }
        assertNull(seen.poll(Mail.QUIET, TimeUnit.MILLISECONDS), "more than " + out);
        return out;
    }

    /** Ten sessions of a connection, each with a transaction for each message: every message is done once. */
    @Test
    void many_sessions() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        int n = 500;
        ConcurrentHashMap<String, Integer> had = new ConcurrentHashMap<>();
        CountDownLatch all = new CountDownLatch(n);
        try (Client c = Client.to(broker.url()).prefetch(5).open()) {
            for (int i = 0; i < 10; i++) {
                Session s = c.transacted();
                MessageProducer p = Client.producer(s, out);
                Client.consumer(s, in).setMessageListener(m -> {
                    try {
                        String text = Mail.body(m);
                        if (had.merge(text, 1, Integer::sum) == 1 && text.endsWith("7")) {
                            s.rollback(); // once
                            return;
                        }
                        p.send(s.createTextMessage(text));
                        s.commit();
                        all.countDown();
                    } catch (JMSException e) {
                        throw new IllegalStateException(e);
                    }
                });
            }
            Mail.send(broker.url(), in, Mail.numbered(n));
            assertTrue(all.await(100, TimeUnit.SECONDS), all.getCount() + " are not done");
        }
        Mail.awaitDepth(broker.url(), in, 0);
        List<String> done = Mail.take(broker.url(), out, n);
        assertEquals(n, done.size());
        assertEquals(n, done.stream().distinct().count());
        had.forEach((text, times) -> assertEquals(text.endsWith("7") ? 2 : 1, times, text));
    }

    /** Messages that wait in a connection which is stopped are not touched; they come when it is started, unflagged. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void stopped_while_messages_wait(boolean listening) throws Exception {
        String queue = Mail.unique("stopped");
        int total = 500; // stopping contends with the listener for a lock, and may lose many times
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            BlockingQueue<String> seen = new LinkedBlockingQueue<>();
            CountDownLatch first = new CountDownLatch(1);
            AtomicBoolean quick = new AtomicBoolean();
            if (listening) {
                consumer.setMessageListener(listener(seen, m -> {
                    first.countDown();
                    Thread.sleep(quick.get() ? 0 : 10);
                }));
            }
            Mail.send(broker.url(), queue, Mail.numbered(total));
            if (listening) {
                assertTrue(first.await(Mail.SOON, TimeUnit.MILLISECONDS));
            } else {
                seen.add(Mail.label(Mail.must(consumer)));
            }
            c.connection.stop(); // returns when no listener is at work
            int before = seen.size();
            if (listening) {
                Thread.sleep(Mail.QUIET);
            } else {
                assertNull(consumer.receive(Mail.QUIET));
            }
            assertEquals(before, seen.size(), "delivered while stopped");
            assertTrue(before < total, "nothing is left to wait");
            quick.set(true);
            c.connection.start();
            while (!listening && seen.size() < total) {
                seen.add(Mail.label(Mail.must(consumer)));
            }
            List<String> want = new ArrayList<>();
            for (int i = 0; i < total; i++) {
                want.add("m" + i + "#1");
            }
            assertEquals(want, next(seen, total));
        }
    }

    /** A connection that is closed while it is stopped gives back what it had, as if nobody had had it. */
    @Test
    void closed_while_stopped() throws Exception {
        String queue = Mail.unique("closed");
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.send(broker.url(), queue, Mail.numbered(3));
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            c.connection.stop();
        }
        assertEquals(List.of("m0#2!", "m1#1", "m2#1"), Mail.take(broker.url(), queue, 3));
    }

    /** recover() within a listener: what it had not acknowledged comes again, in order. */
    @Test
    void recover_in_a_listener() throws Exception {
        String queue = Mail.unique("recover");
        Mail.send(broker.url(), queue, Mail.numbered(3));
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            AtomicInteger calls = new AtomicInteger();
            Client.consumer(s, queue).setMessageListener(listener(seen, m -> {
                switch (calls.incrementAndGet()) {
                    case 2 -> s.recover();
                    case 5 -> m.acknowledge();
                    default -> { }
                }
            }));
            assertEquals(List.of("m0#1", "m1#1", "m0#2!", "m1#2!", "m2#1"), next(seen, 5));
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** rollback() and commit() within a listener, which sends in its transaction. */
    @Test
    void transactions_in_a_listener() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, Mail.numbered(3));
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Client.consumer(s, in).setMessageListener(listener(seen, m -> {
                Mail.send(s, out, Mail.label(m));
                if (Mail.count(m) < 3 && Mail.body(m).equals("m1")) {
                    s.rollback();
                } else {
                    s.commit();
                }
            }));
            assertEquals(List.of("m0#1", "m1#1", "m1#2!", "m1#3!", "m2#1"), next(seen, 5));
        }
        assertEquals(List.of("m0#1#1", "m1#3!#1", "m2#1#1"), Mail.take(broker.url(), out, 3));
        Mail.awaitDepth(broker.url(), in, 0);
    }

    /** A listener that throws without a transaction: the message comes again, with its count, and then the next. */
    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE})
    void a_listener_that_throws(int mode) throws Exception {
        String queue = Mail.unique("throws");
        Mail.send(broker.url(), queue, Mail.numbered(3));
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            Client.consumer(c.session(mode), queue).setMessageListener(m -> {
                try {
                    String label = Mail.label(m);
                    seen.add(label);
                    if (label.startsWith("m1") && Mail.count(m) < 3) {
                        throw new IllegalStateException("not yet");
                    }
                } catch (JMSException e) {
                    seen.add(e.toString());
                }
            });
            assertEquals(List.of("m0#1", "m1#1", "m1#2!", "m1#3!", "m2#1"), next(seen, 5));
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** A session that closes its consumer, and opens another, from within its listener. */
    @Test
    void a_consumer_is_closed_in_its_listener() throws Exception {
        String queue = Mail.unique("closes");
        Mail.send(broker.url(), queue, Mail.numbered(3));
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer[] open = new MessageConsumer[1];
            open[0] = Client.consumer(s, queue);
            open[0].setMessageListener(listener(seen, m -> open[0].close()));
            assertEquals(List.of("m0#1"), next(seen, 1));
            assertEquals(List.of("m1#1", "m2#1"), Mail.take(broker.url(), queue, 2));
        }
    }

    /** Close waits for the listener, whose work is acknowledged; nothing is delivered after. */
    @Test
    void close_waits_for_the_listener() throws Exception {
        String queue = Mail.unique("waits");
        Mail.send(broker.url(), queue, Mail.numbered(2));
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        CountDownLatch began = new CountDownLatch(1);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Client.consumer(s, queue).setMessageListener(listener(seen, m -> {
                began.countDown();
                Thread.sleep(300);
                seen.add("done");
            }));
            assertTrue(began.await(Mail.SOON, TimeUnit.MILLISECONDS));
            s.close();
            assertEquals(List.of("m0#1", "done"), next(seen, 2));
        }
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), queue, 1));
    }

    /** Several consumers of one session take turns: one listener at a time, whatever the queue. */
    @Test
    void one_at_a_time() throws Exception {
        String base = Mail.unique("turns");
        AtomicInteger inside = new AtomicInteger();
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            for (int i = 0; i < 3; i++) {
                Client.consumer(s, base + "." + i).setMessageListener(listener(seen, m -> {
                    if (inside.incrementAndGet() > 1) {
                        seen.add("two at once");
                    }
                    Thread.sleep(2);
                    inside.decrementAndGet();
                }));
            }
            for (int i = 0; i < 3; i++) {
                Mail.send(broker.url(), base + "." + i, Mail.numbered(10));
            }
            List<String> got = next(seen, 30);
            assertEquals(10, got.stream().distinct().count(), got.toString());
        }
    }
}

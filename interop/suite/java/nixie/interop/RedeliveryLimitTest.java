package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.RedeliveryPolicy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The client's own RedeliveryPolicy: limits (R-POL-16), counters told after a close, delays (R-POL-10 to 13). */
class RedeliveryLimitTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** R-POL-16, C03 with client limits alone: maximumRedeliveries = N means N + 1 deliveries, then one dead letter. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 6})
    void limit_means_that_many_redeliveries(int limit) throws Exception {
        String queue = Mail.unique("limit");
        Mail.send(broker.url(), queue, "m");
        List<String> seen = new ArrayList<>();
        try (Client c = Client.to(broker.url()).limit(limit).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (Message m = consumer.receive(Mail.SOON); m != null;
                    m = consumer.receive(seen.size() <= limit ? Mail.SOON : Mail.QUIET)) {
                seen.add(Mail.label(m));
                assertTrue(seen.size() <= 40, "endless");
                s.rollback();
            }
        }
        List<String> want = new ArrayList<>();
        for (int i = 1; i <= limit + 1; i++) {
            want.add("m#" + i + (i > 1 ? "!" : ""));
        }
        assertEquals(want, seen);
        Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
        String cause = dead.getStringProperty(Mail.CAUSE);
        assertTrue(cause.startsWith("java.lang.Throwable: Delivery[" + (limit + 1)
            + "] exceeds redelivery policy limit:RedeliveryPolicy {"), cause);
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-POL-16: -1 never gives up. */
    @Test
    void minus_one_is_endless() throws Exception {
        String queue = Mail.unique("endless");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(-1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i <= 20; i++) {
                assertEquals("m#" + i + (i > 1 ? "!" : ""), Mail.label(Mail.must(consumer)));
                s.rollback();
            }
            assertEquals("m#21!", Mail.label(Mail.must(consumer)));
            s.commit();
            Mail.none(consumer);
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /**
     * R-EDGE-14: what was rolled back before a close is told to the next consumer, so that the limit counts
     * attempts and not closes. ActiveMQ tells 1, whatever happened.
     */
    @ParameterizedTest
    @CsvSource({"1,1", "6,1", "6,3", "6,6", "-1,5"})
    void counter_told_after_close(int limit, int rollbacks) throws Exception {
        String queue = Mail.unique("told");
        Mail.send(broker.url(), queue, "m");
        rollBack(queue, limit, rollbacks);
        try (Client c = Client.to(broker.url()).limit(limit).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Message m = Mail.must(consumer);
            assertEquals("m#" + Reference.or(rollbacks + 1, 2) + "!", Mail.label(m));
            if (limit < 0) {
                s.commit();
                return;
            }
            int deliveries = rollbacks;
            for (; m != null; m = consumer.receive(deliveries <= limit ? Mail.SOON : Mail.QUIET)) {
                deliveries++;
                s.rollback();
            }
            if (!Reference.active()) {
                assertEquals(limit + 1, deliveries, "deliveries over both consumers");
            }
        }
        Mail.deadLetters(broker.url(), queue, 1);
    }

    /** Receives one message and rolls it back n times in a connection of its own. */
    private static void rollBack(String queue, int limit, int n) throws JMSException {
        try (Client c = Client.to(broker.url()).limit(limit).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < n; i++) {
                Mail.must(consumer);
                s.rollback();
            }
        }
    }

    /** R-CLIENT-58, R-EDGE-49: a close with the last attempt open is that attempt's failure, and the dead letter comes at once. */
    @Test
    void closing_with_limit_zero_gives_up_at_once() throws Exception {
        String queue = Mail.unique("close");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Mail.must(Client.consumer(c.transacted(), queue));
        }
        String cause = Mail.deadLetters(broker.url(), queue, 1).get(0).getStringProperty(Mail.CAUSE);
        assertTrue(cause.contains("Delivery[1]"), cause);
    }

    /** R-CLIENT-30, 31: a consumer with a lower limit than what it is told gives the message up unread. */
    @Test
    void a_stricter_consumer_gives_up_unread() throws Exception {
        String queue = Mail.unique("stricter");
        Mail.send(broker.url(), queue, "m");
        for (int i = 0; i < 3; i++) {
            try (Client c = Client.to(broker.url()).limit(-1).open()) {
                assertEquals(i + 1, Mail.count(Mail.must(Client.consumer(c.transacted(), queue))));
            }
        }
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Mail.givenUp(broker.url(), queue, Client.consumer(c.transacted(), queue));
        }
        String cause = Mail.deadLetters(broker.url(), queue, 1).get(0).getStringProperty(Mail.CAUSE);
        assertTrue(cause.startsWith("java.lang.Throwable: Dispatch[3] to ID:"), cause);
    }

    /** A listener in a session that acknowledges by itself: an exception is a failed attempt (section 3.2). */
    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE, 4})
    void a_listener_that_throws(int mode) throws Exception {
        String queue = Mail.unique("listener");
        Mail.send(broker.url(), queue, "m");
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.to(broker.url()).limit(2).open()) {
            Client.consumer(c.session(mode), queue).setMessageListener(m -> {
                try {
                    seen.add(Mail.label(m));
                } catch (JMSException e) {
                    seen.add(e.toString());
                }
                throw new IllegalStateException("not today");
            });
            List<String> got = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                got.add(seen.poll(Mail.SOON, TimeUnit.MILLISECONDS));
            }
            assertEquals(List.of("m#1", "m#2!", "m#3!"), got);
            String cause = Mail.deadLetters(broker.url(), queue, 1).get(0).getStringProperty(Mail.CAUSE);
            assertTrue(cause.startsWith("java.lang.Throwable: Delivery[3] exceeds"), cause);
            assertTrue(cause.endsWith("cause:java.lang.IllegalStateException: not today"), cause);
        }
        assertTrue(seen.isEmpty(), seen.toString());
    }

    /** E2, a fifth of the size: the first delay is initialRedeliveryDelay, later ones redeliveryDelay. */
    @Test
    void delays_E2() throws Exception {
        assertDelays(new long[] {100, 200, 200}, p -> {
            p.setInitialRedeliveryDelay(100);
            p.setRedeliveryDelay(200);
        });
    }

    /** E8, a tenth of the size: doubling. */
    @Test
    void delays_E8() throws Exception {
        assertDelays(new long[] {100, 200, 400, 800}, p -> {
            p.setInitialRedeliveryDelay(100);
            p.setRedeliveryDelay(100);
            p.setUseExponentialBackOff(true);
            p.setBackOffMultiplier(2);
        });
    }

    /** E11: tripling up to a cap. */
    @Test
    void delays_E11() throws Exception {
        assertDelays(new long[] {100, 300, 400, 400}, p -> {
            p.setInitialRedeliveryDelay(100);
            p.setRedeliveryDelay(50);
            p.setUseExponentialBackOff(true);
            p.setBackOffMultiplier(3);
            p.setMaximumRedeliveryDelay(400);
        });
    }

    /** Rolls one message back and measures how long each redelivery takes. */
    private static void assertDelays(long[] want, Consumer<RedeliveryPolicy> policy) throws Exception {
        Pace.keeps(() -> delays(want, policy));
    }

    private static void delays(long[] want, Consumer<RedeliveryPolicy> policy) throws Exception {
        String queue = Mail.unique("delay");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(want.length).policy(policy).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.must(consumer);
            for (int i = 0; i < want.length; i++) {
                long start = System.nanoTime();
                s.rollback();
                assertEquals(i + 2, Mail.count(Mail.must(consumer)));
                Pace.within(want[i], (System.nanoTime() - start) / 1_000_000, "redelivery " + (i + 1));
            }
            s.commit();
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }
}

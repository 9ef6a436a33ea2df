package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Redelivery by the broker, as the redeliveryPlugin configures it; where ours is better, without ActiveMQ. */
@Reference.Beyond("R-PLG-33, R-EDGE-06, C03, C15")
class BrokerRedeliveryTest {
    @RegisterExtension static final Broker broker = Broker.with("redelivery.xml");

    /** How much earlier than the broker the client may begin to count, milliseconds. */
    private static final long EARLY = 50;

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    /** C01, C04: counts, delays that grow for each message by itself, and the order of the dead letters. */
    @Test
    void delays_grow_for_each_message() throws Exception {
        Pace.keeps(BrokerRedeliveryTest::delaysGrow);
    }

    private static void delaysGrow() throws Exception {
        String queue = Mail.unique("growing");
        Mail.send(broker.url(), queue, Mail.numbered(5));
        Map<String, List<Long>> gaps = new HashMap<>();
        Map<String, Long> failed = new HashMap<>();
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int n = 0; n < 5 * 4; n++) {
                Message m = Mail.must(consumer);
                String body = Mail.body(m);
                List<Long> of = gaps.computeIfAbsent(body, k -> new ArrayList<>());
                if (failed.containsKey(body)) {
                    of.add(now() - failed.get(body));
                    assertEquals(1000L << (of.size() - 1), m.getLongProperty("redeliveryDelay"));
                }
                assertEquals(of.size() + 1, Mail.count(m));
                assertEquals(of.size() > 0, m.getJMSRedelivered());
                s.rollback();
                failed.put(body, now());
            }
            Mail.none(consumer);
        }
        for (Map.Entry<String, List<Long>> e : gaps.entrySet()) {
            for (int i = 0; i < 3; i++) {
                Pace.within(1000L << i, e.getValue().get(i), "delivery " + (i + 2) + " of " + e.getKey());
            }
        }
        List<Message> dead = Mail.deadLetters(broker.url(), queue, 5);
        assertEquals(List.of(Mail.numbered(5)), Mail.bodies(dead));
        for (Message m : dead) {
            assertFalse(m.propertyExists("redeliveryDelay"), "the dead letter carries redeliveryDelay");
            assertFalse(m.propertyExists("scheduledJobId"), "the dead letter carries scheduledJobId");
        }
    }

    /** C03: the client's limit and the broker's; the larger plus one, and no count falls. */
    @ParameterizedTest
    @CsvSource({"0, 3", "1, 3", "6, 7"})
    void limits_of_client_and_broker(int limit, int deliveries) throws Exception {
        String queue = Mail.unique("two");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(limit).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int n = 1; n <= deliveries; n++) {
                assertEquals("m#" + n + (n > 1 ? "!" : ""), Mail.label(Mail.must(consumer)));
                s.rollback();
            }
            assertNull(consumer.receive(2000));
        }
        Mail.deadLetters(broker.url(), queue, 1);
    }

    /** C02: what kills its consumers is parked, and what only waited behind it is not. */
    @Test
    void poison_that_kills_its_consumer() throws Exception {
        String queue = Mail.unique("two");
        assertEquals(List.of("G1", "G2", "G3", "P#1", "P#2!", "P#3!"), AddressSettingsTest.untilParked(broker, queue));
        Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
        assertEquals("P", Mail.body(dead));
        assertTrue(dead.getStringProperty(Mail.CAUSE).contains("exceeds redelivery policy limit"), dead.getStringProperty(Mail.CAUSE));
    }

    /** C05: the delay holds when consumers come and go, in order or not. */
    @Test
    void delay_holds_when_consumers_come_and_go() throws Exception {
        String queue = Mail.unique("churn");
        churn(broker, queue, 4, 2000);
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /**
     * Five workers, each with a new connection for every look, which it closes or has cut, in turns, when it got the one
     * message there is, until it was delivered n times. No delivery may come within the delay of the one before.
     */
    static void churn(Broker broker, String queue, int n, long delay) throws Exception {
        Mail.send(broker.url(), queue, "m");
        List<Long> at = new CopyOnWriteArrayList<>();
        ExecutorService workers = Executors.newFixedThreadPool(5);
        List<Future<Void>> all = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            all.add(workers.submit(() -> {
                while (at.size() < n) {
                    try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
                        Client c = Client.to(proxy.url()).prefetch(1).open();
                        Message m = Client.consumer(c.transacted(), queue).receive(300);
                        boolean cut = false;
                        if (m != null) {
                            synchronized (at) {
                                at.add(now());
                                assertEquals(at.size(), Mail.count(m));
                                long gap = at.size() > 1 ? at.get(at.size() - 1) - at.get(at.size() - 2) : delay;
                                assertTrue(gap >= delay - EARLY, "delivery " + at.size() + " after " + gap + " ms");
                                cut = at.size() % 2 == 1;
                            }
                        }
                        if (cut) {
                            proxy.cut();
                            Client.abandon(c.connection);
                        } else {
                            c.close();
                        }
                    }
                }
                return null;
            }));
        }
        workers.shutdown();
        for (Future<Void> worker : all) {
            worker.get();
        }
    }

    /** C06: a short delay is not behind a long one; any consumer is next. */
    @Test
    void any_consumer_is_next() throws Exception {
        Pace.keeps(BrokerRedeliveryTest::anyIsNext);
    }

    private static void anyIsNext() throws Exception {
        String queue = Mail.unique("any");
        Mail.send(broker.url(), queue, "m");
        try (Client a = Client.to(broker.url()).limit(0).open(); Client b = Client.to(broker.url()).limit(0).open()) {
            Session s = a.transacted();
            Message first = Mail.must(Client.consumer(s, queue));
            MessageConsumer other = Client.consumer(b.auto(), queue);
            s.rollback();
            s.close();
            long failed = now();
            Message m = Mail.must(other);
            Pace.within(2000, now() - failed, "again");
            assertEquals(first.getJMSMessageID(), m.getJMSMessageID());
            assertEquals(first.getJMSTimestamp(), m.getJMSTimestamp());
        }
    }

    /** C08 part 2: forwarding what came back is a send like any other. */
    @Test
    void forwarding_what_came_back() throws Exception {
        Pace.keeps(BrokerRedeliveryTest::forwarding);
    }

    private static void forwarding() throws Exception {
        String queue = Mail.unique("two");
        String next = Mail.unique("next");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.must(consumer);
            s.rollback();
            Client.producer(s, next).send(Mail.must(consumer));
            s.commit();
            long committed = now();
            assertEquals("m#1", Mail.label(Mail.must(Client.consumer(s, next))));
            long took = now() - committed;
            Pace.inTime(took < 500, "after " + took + " ms");
            s.commit();
        }
    }

    /** R-EDGE-06: a durable subscription is redelivered for itself. */
    @Test
    void durable_subscription() throws Exception {
        String topic = Mail.unique("feed");
        try (Client a = Client.to(broker.url()).limit(0).clientId(Mail.unique("a")).open();
                Client b = Client.to(broker.url()).limit(0).clientId(Mail.unique("b")).open()) {
            Session sa = a.transacted();
            Session sb = b.transacted();
            MessageConsumer failing = sa.createDurableSubscriber((Topic) Client.destination("topic://" + topic), "s");
            MessageConsumer working = sb.createDurableSubscriber((Topic) Client.destination("topic://" + topic), "s");
            Mail.send(broker.url(), "topic://" + topic, "m");
            assertEquals("m#1", Mail.label(Mail.must(working)));
            sb.commit();
            for (int n = 1; n <= 3; n++) {
                assertEquals("m#" + n + (n > 1 ? "!" : ""), Mail.label(Mail.must(failing)));
                sa.rollback();
            }
            Mail.none(working);
            sb.commit();
        }
        Mail.deadLetters(broker.url(), "topic://" + topic, 1);
    }

    /** C15: a time to live that ends in the delay, and one that does not. */
    @Test
    void delay_does_not_move_the_expiration() throws Exception {
        String queue = Mail.unique("ttl"); // a delay of 5 s
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Session auto = c.auto();
            MessageProducer p = Client.producer(auto, queue);
            p.send(Mail.text(auto, queue, "short"), DeliveryMode.PERSISTENT, 4, 4000);
            p.send(Mail.text(auto, queue, "long"), DeliveryMode.PERSISTENT, 4, 60_000);
            long expiration = 0;
            for (String body : List.of("short", "long")) {
                Message m = Mail.must(consumer);
                assertEquals(body, Mail.body(m));
                expiration = m.getJMSExpiration();
                s.rollback();
            }
            Message m = Mail.must(consumer);
            assertEquals("long", Mail.body(m));
            assertEquals(expiration, m.getJMSExpiration());
            s.commit();
            Mail.none(consumer);
        }
        List<Message> dead = Mail.deadLetters(broker.url(), queue, 1);
        assertTrue(dead.get(0).getStringProperty(Mail.CAUSE).contains("Message Expired"), dead.get(0).getStringProperty(Mail.CAUSE));
    }

    /** Delays survive SIGKILL, with the count and the delay that clients are told. */
    @Test
    void delay_survives_a_kill() throws Exception {
        Pace.keeps(BrokerRedeliveryTest::killed);
    }

    private static void killed() throws Exception {
        try (BrokerProcess own = new BrokerProcess("BrokerRedeliveryTest-kill", Broker.resource("redelivery.xml")).start()) {
            String queue = Mail.unique("kill");
            Mail.send(own.url(), queue, Mail.numbered(20));
            long failed;
            try (Client c = Client.to(own.url()).limit(0).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queue);
                long begin = now();
                for (int i = 0; i < 20; i++) {
                    Mail.must(consumer);
                    s.rollback();
                }
                Pace.inTime(now() - begin < 2000, "the first came back before the last had failed");
                failed = now(); // the client gives the last one up only now, and does not wait: its rollback was answered
                own.kill();
                Client.abandon(c.connection);
            }
            own.start();
            try (Client c = Client.to(own.url()).limit(0).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queue);
                for (int i = 0; i < 20; i++) {
                    Message m = Mail.must(consumer);
                    assertNotNull(m);
                    assertEquals("m" + i + "#2!", Mail.label(m));
                    assertEquals(2000, m.getLongProperty("redeliveryDelay"));
                    s.commit();
                }
                assertTrue(now() - failed >= 2000 - EARLY, "all were back after " + (now() - failed) + " ms");
                Mail.none(consumer);
            }
        }
    }

    /** A read of the dead letter queue does not go by the policy (R-EDGE-31). */
    @Test
    void failing_reader_of_dead_letters() throws Exception {
        String queue = Mail.unique("two");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int n = 0; n < 3; n++) {
                Mail.must(consumer);
                s.rollback();
            }
        }
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer reader = s.createConsumer(Client.destination(Mail.DLQ), "origin = '" + queue + "'");
            Mail.must(reader);
            s.rollback();
        } catch (JMSException e) {
            throw new AssertionError(e);
        }
        Mail.deadLetters(broker.url(), queue, 1);
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Hashtable;
import java.util.List;
import java.util.stream.Collectors;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.naming.Context;
import javax.naming.InitialContext;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.broker.region.policy.RedeliveryPolicyMap;
import org.apache.activemq.command.ActiveMQQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where an application says its RedeliveryPolicy: in code, by URI, for a destination, at a consumer (R-URI-01 to 13). */
@Timeout(120)
class PolicySourceTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** How often a message is delivered that is rolled back until it is a dead letter, and its cause. */
    private record Life(int deliveries, String cause) {
    }

    private static Life life(Session s, MessageConsumer consumer, String queue) throws Exception {
        int n = 0;
        Mail.must(consumer);
        do {
            n++;
            assertTrue(n <= 20, "endless");
            s.rollback();
        } while (comesAgain(consumer, queue));
        Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
        assertEquals("m", Mail.body(dead));
        return new Life(n, dead.getStringProperty(Mail.CAUSE));
    }

    /** Whether the one message of a queue comes again, or is a dead letter. */
    private static boolean comesAgain(MessageConsumer consumer, String queue) throws Exception {
        for (long end = System.nanoTime() + Mail.SOON * 1_000_000; System.nanoTime() < end; ) {
            if (consumer.receive(200) != null) {
                return true;
            }
            if (Mail.browse(broker.url(), queue).isEmpty()) {
                assertEquals(null, consumer.receive(Mail.QUIET), "it comes although it is given up");
                return false;
            }
        }
        throw new AssertionError("it is in the queue, and does not come");
    }

    private static Life life(ActiveMQConnectionFactory factory, String queue) throws Exception {
        Mail.send(broker.url(), queue, "m");
        ActiveMQConnection c = (ActiveMQConnection) factory.createConnection();
        try {
            c.start();
            Session s = c.createSession(true, Session.SESSION_TRANSACTED);
            return life(s, Client.consumer(s, queue), queue);
        } finally {
            c.close();
        }
    }

    /** R-URI-10, 13: options of the URI, also behind failover:. */
    @ParameterizedTest
    @ValueSource(strings = {"%s?%s", "failover:(%s)?%s&maxReconnectAttempts=3"})
    void by_uri(String form) throws Exception {
        String url = String.format(form, broker.url(), "jms.redeliveryPolicy.maximumRedeliveries=2"
            + "&jms.redeliveryPolicy.initialRedeliveryDelay=20&jms.redeliveryPolicy.redeliveryDelay=30"
            + "&jms.redeliveryPolicy.useExponentialBackOff=true&jms.redeliveryPolicy.backOffMultiplier=2");
        String queue = Mail.unique("uri");
        Life life = life(new ActiveMQConnectionFactory(url), queue);
        assertEquals(3, life.deliveries());
        String cause = life.cause();
        for (String part : List.of("maximumRedeliveries = 2", "initialRedeliveryDelay = 20", "redeliveryDelay = 30",
                "useExponentialBackOff = true", "backOffMultiplier = 2.0")) {
            assertTrue(cause.contains(part), cause); // R-CLIENT-49
        }
    }

    /** R-URI-14: the same keys in the properties of a JNDI context, without "jms.". */
    @Test
    void by_jndi() throws Exception {
        String queue = Mail.unique("jndi");
        Hashtable<String, String> env = new Hashtable<>();
        env.put(Context.INITIAL_CONTEXT_FACTORY, "org.apache.activemq.jndi.ActiveMQInitialContextFactory");
        env.put(Context.PROVIDER_URL, broker.url());
        env.put("redeliveryPolicy.maximumRedeliveries", "1");
        env.put("redeliveryPolicy.initialRedeliveryDelay", "20");
        env.put("prefetchPolicy.queuePrefetch", "7");
        env.put("queue.orders", queue);
        Context jndi = new InitialContext(env);
        ActiveMQConnectionFactory factory = (ActiveMQConnectionFactory) jndi.lookup("ConnectionFactory");
        assertEquals(7, factory.getPrefetchPolicy().getQueuePrefetch());
        assertEquals(queue, ((ActiveMQQueue) jndi.lookup("orders")).getPhysicalName());
        Life life = life(factory, queue);
        assertEquals(2, life.deliveries());
        assertTrue(life.cause().contains("initialRedeliveryDelay = 20"), life.cause());
    }

    /** R-URI-12: what the client does not know is its own error; the broker is not troubled. */
    @Test
    void unknown_options() {
        assertThrows(IllegalArgumentException.class, () -> new ActiveMQConnectionFactory(
            broker.url() + "?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.maximumRetries=3"));
    }

    /** R-URI-01, R-MAP-10, 15: a map with entries for destinations; the default entry for all others. */
    @Test
    void by_destination() throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(broker.url());
        RedeliveryPolicyMap map = new RedeliveryPolicyMap();
        map.setDefaultEntry(policy(0));
        String stem = Mail.unique("map");
        map.setRedeliveryPolicyEntries(List.of(entry(stem + ".>", 1), entry(stem + ".EXACT", 3)));
        factory.setRedeliveryPolicyMap(map);
        assertEquals(2, life(factory, stem + ".A").deliveries());
        Life exact = life(factory, stem + ".EXACT");
        assertEquals(4, exact.deliveries());
        assertTrue(exact.cause().contains("destination = queue://" + stem + ".EXACT"), exact.cause()); // R-CLIENT-49
        assertEquals(1, life(factory, Mail.unique("other")).deliveries());
    }

    /** R-URI-02: a consumer's own policy counts from when it is set. */
    @Test
    void at_a_consumer() throws Exception {
        String queue = Mail.unique("own");
        Mail.send(broker.url(), queue, "m");
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            ((ActiveMQMessageConsumer) consumer).setRedeliveryPolicy(policy(2));
            assertEquals(3, life(s, consumer, queue).deliveries());
        }
    }

    /** Two consumers of one queue with different limits: whoever has the message decides (R-CLIENT-43). */
    @Test
    void two_applications_with_limits_of_their_own() throws Exception {
        String queue = Mail.unique("two");
        Mail.send(broker.url(), queue, "m");
        try (Client patient = Client.to(broker.url()).limit(6).open()) {
            Session s = patient.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i <= 2; i++) {
                assertEquals(i, Mail.count(Mail.must(consumer)));
                s.rollback();
            }
        }
        try (Client strict = Client.to(broker.url()).limit(2).open()) {
            Session s = strict.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Message m = Mail.must(consumer);
            if (!Reference.active()) { // R-EDGE-14: ActiveMQ tells 2, whatever happened before
                assertEquals(3, Mail.count(m));
            }
            s.rollback();
            if (!Reference.active()) {
                Mail.deadLetters(broker.url(), queue, 1);
            }
        }
    }

    /** R-POL-12: collision avoidance spreads a delay by its factor, both ways. */
    @Test
    void collision_avoidance() throws Exception {
        Pace.keeps(PolicySourceTest::spread);
    }

    private static void spread() throws Exception {
        String queue = Mail.unique("spread");
        Mail.send(broker.url(), queue, "m");
        List<Long> took = new ArrayList<>();
        try (Client c = Client.to(broker.url()).limit(-1).policy(p -> {
            p.setInitialRedeliveryDelay(100);
            p.setRedeliveryDelay(100);
            p.setUseCollisionAvoidance(true);
            p.setCollisionAvoidancePercent((short) 50);
        }).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.must(consumer);
            for (int i = 0; i < 12; i++) {
                long start = System.nanoTime();
                s.rollback();
                Mail.must(consumer);
                took.add((System.nanoTime() - start) / 1_000_000);
            }
            s.commit();
        }
        assertTrue(took.stream().allMatch(t -> t >= 45), took.toString());
        Pace.inTime(took.stream().allMatch(t -> t <= 1150), took.toString());
        assertTrue(took.stream().map(t -> t / 5).collect(Collectors.toSet()).size() > 1, took.toString());
    }

    /** R-CLIENT-30: without the check before dispatch a message beyond the limit is delivered once more. */
    @Test
    void no_check_before_dispatch() throws Exception {
        String queue = Mail.unique("nocheck");
        Mail.send(broker.url(), queue, "m");
        for (int i = 1; i <= 3; i++) {
            try (Client c = Client.to(broker.url()).limit(-1).open()) {
                Mail.must(Client.consumer(c.transacted(), queue)); // closed before commit
            }
        }
        try (Client c = Client.to(broker.url()).limit(1).policy(p -> p.setPreDispatchCheck(false)).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Message m = Mail.must(consumer);
            assertTrue(Mail.count(m) > 2, Mail.label(m));
            s.commit();
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** R-CLIENT-33: a client that does not look at expirations gets what has expired in its window. */
    @Test
    void no_check_of_expirations() throws Exception {
        String queue = Mail.unique("late");
        try (Client c = Client.to(broker.url()).factory(f -> f.setConsumerExpiryCheckEnabled(false)).open();
             Client sender = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Session out = sender.auto();
            var producer = Client.producer(out, queue);
            producer.setTimeToLive(2000);
            producer.send(out.createTextMessage("m"));
            Client.awaitBuffered(consumer, 1);
            Thread.sleep(2500);
            assertEquals("m", Mail.body(Mail.must(consumer)));
            s.commit();
            Mail.awaitDepth(broker.url(), queue, 0);
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    private static RedeliveryPolicy entry(String queue, int limit) {
        RedeliveryPolicy p = policy(limit);
        p.setDestination(new ActiveMQQueue(queue));
        return p;
    }

    private static RedeliveryPolicy policy(int limit) {
        RedeliveryPolicy p = new RedeliveryPolicy();
        p.setInitialRedeliveryDelay(0);
        p.setRedeliveryDelay(0);
        p.setMaximumRedeliveries(limit);
        return p;
    }
}

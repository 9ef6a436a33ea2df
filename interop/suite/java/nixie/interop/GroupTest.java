package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
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

/** Message groups (R-GRP-01 to 06, C24). */
class GroupTest {
    @RegisterExtension static final Broker broker = Broker.with("groups.xml");

    private static final String FIRST = "JMSXGroupFirstForConsumer";

    /** Sends texts such as "A0": the letter is the group, and 0 its place. */
    private static void send(String queue, String... texts) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (String text : texts) {
                Message m = Mail.text(s, queue, text);
                m.setStringProperty("JMSXGroupID", text.substring(0, 1));
                p.send(m);
            }
        }
    }

    private static void sendWithSequence(String queue, String text, int sequence) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = Mail.text(s, queue, text);
            m.setStringProperty("JMSXGroupID", text.substring(0, 1));
            m.setIntProperty("JMSXGroupSeq", sequence);
            Client.producer(s, queue).send(m);
        }
    }

    private static List<String> bodiesOf(MessageConsumer c, int n) throws JMSException {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            out.add(Mail.next(c));
        }
        return out;
    }

    @Test
    void a_group_stays_with_its_first_consumer() throws Exception {
        String queue = Mail.unique("groups");
        try (Client one = Client.open(broker.url()); Client two = Client.open(broker.url())) {
            MessageConsumer a = Client.consumer(one.auto(), queue);
            send(queue, "A0", "B0");
            Message first = Mail.must(a);
            assertEquals("A0", Mail.body(first));
            assertTrue(first.getBooleanProperty(FIRST), "R-GRP-03");
            assertEquals("B0", Mail.next(a));
            MessageConsumer b = Client.consumer(two.auto(), queue);
            send(queue, "A1", "C0", "B1", "D0", "C1", "A2");
            assertEquals(List.of("A1", "B1", "A2"), bodiesOf(a, 3), "what it owns, and no more: it owns two groups, and the other none");
            assertEquals(List.of("C0", "D0", "C1"), bodiesOf(b, 3), "the new one gets new groups");
            Mail.none(a);
            Mail.none(b);
        }
    }

    /** R-GRP-03: what the owner had not acknowledged comes first, to the one that takes over. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void hand_over(boolean killed) throws Exception {
        String queue = Mail.unique("heirs");
        try (Client heir = Client.open(broker.url())) {
            Client owner = Client.open(broker.url());
            Session s = owner.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer a = Client.consumer(s, queue);
            send(queue, "A0", "A1", "A2");
            Message m = Mail.must(a);
            assertEquals("A0", Mail.body(m));
            m.acknowledge();
            assertEquals("A1", Mail.next(a));
            MessageConsumer b = Client.consumer(heir.auto(), queue);
            send(queue, "A3");
            Mail.none(b);
            if (killed) {
                owner.connection.getTransport().stop();
                Client.abandon(owner.connection);
            } else {
                owner.close();
            }
            Message next = Mail.must(b);
            assertEquals("A1", Mail.body(next));
            assertTrue(next.getBooleanProperty(FIRST));
            Message then = Mail.must(b);
            assertEquals("A2", Mail.body(then));
            assertFalse(then.getBooleanProperty(FIRST));
            assertEquals("A3", Mail.next(b));
        }
    }

    /** The groups that wait are spread over the consumers, since the queue waits for the second one. */
    @Test
    void spread_over_those_who_come() throws Exception {
        String queue = Mail.unique("gathering");
        send(queue, "A0", "B0", "A1", "B1");
        try (Client one = Client.open(broker.url()); Client two = Client.open(broker.url())) {
            MessageConsumer a = Client.consumer(one.auto(), queue);
            Mail.none(a);
            MessageConsumer b = Client.consumer(two.auto(), queue);
            List<String> ofA = bodiesOf(a, 2);
            List<String> ofB = bodiesOf(b, 2);
            assertNotEquals(ofA.get(0).charAt(0), ofB.get(0).charAt(0));
            assertEquals(ofA.get(0).charAt(0), ofA.get(1).charAt(0));
            assertEquals(ofB.get(0).charAt(0), ofB.get(1).charAt(0));
        }
    }

    @Test
    void sequence_minus_one_closes_the_group() throws Exception {
        String queue = Mail.unique("closed");
        try (Client one = Client.open(broker.url()); Client two = Client.open(broker.url())) {
            MessageConsumer a = Client.consumer(one.auto(), queue);
            send(queue, "A0", "B0");
            assertEquals(List.of("A0", "B0"), bodiesOf(a, 2));
            MessageConsumer b = Client.consumer(two.auto(), queue);
            sendWithSequence(queue, "A1", -1);
            assertEquals("A1", Mail.next(a));
            send(queue, "A2", "B1");
            assertEquals("A2", Mail.next(b), "the group was closed, and this consumer has fewer");
            assertEquals("B1", Mail.next(a));
        }
    }

    /** C24: the events of one customer stay in order through delayed retries, and the others' go on. */
    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    @Reference.Beyond("C24")
    void order_through_a_delayed_retry(int failures) throws Exception {
        Pace.keeps(() -> delayedRetry(failures));
    }

    private static void delayedRetry(int failures) throws Exception {
        String queue = Mail.unique("customers");
        List<String> committed = new ArrayList<>();
        List<Long> attempts = new ArrayList<>();
        Map<String, String> owners = new ConcurrentHashMap<>();
        List<String> strays = new ArrayList<>();
        CountDownLatch others = new CountDownLatch(4);
        CountDownLatch rest = new CountDownLatch(3);
        long begin;
        try (Client one = Client.to(broker.url()).limit(0).prefetch(1).open();
             Client two = Client.to(broker.url()).limit(0).prefetch(1).open()) {
            int n = 0;
            for (Client c : List.of(one, two)) {
                String name = "consumer " + n++;
                Session s = c.transacted();
                Client.consumer(s, queue).setMessageListener(m -> {
                    try {
                        String text = Mail.body(m);
                        boolean fails = false;
                        synchronized (committed) {
                            String owner = owners.putIfAbsent(text.substring(0, 1), name);
                            if (owner != null && !owner.equals(name)) {
                                strays.add(text + " at " + name);
                            }
                            if (text.equals("A0")) {
                                attempts.add(System.nanoTime());
                                fails = attempts.size() <= failures;
                            }
                            if (!fails) {
                                committed.add(text);
                            }
                        }
                        if (fails) {
                            s.rollback();
                            return;
                        }
                        s.commit();
                        if (text.startsWith("B")) {
                            others.countDown();
                        } else if (!text.equals("A0")) {
                            rest.countDown();
                        }
                    } catch (JMSException e) {
                        throw new IllegalStateException(e);
                    }
                });
            }
            begin = System.nanoTime();
            send(queue, "A0", "B0", "A1", "B1", "A2", "B2", "A3", "B3");
            assertTrue(others.await(20, TimeUnit.SECONDS), "group B did not go on");
            long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
            Pace.inTime(took < 1000, "group B took " + took + " ms, want it done before A0 comes back");
            assertTrue(rest.await(30, TimeUnit.SECONDS), "group A did not go on: " + committed);
            synchronized (committed) {
                assertEquals(List.of(), strays, "a group had two consumers");
                List<String> ofA = committed.stream().filter(t -> t.startsWith("A")).toList();
                List<String> ofB = committed.stream().filter(t -> t.startsWith("B")).toList();
                assertEquals(failures == 1 ? List.of("A0", "A1", "A2", "A3") : List.of("A1", "A2", "A3"), ofA);
                assertEquals(List.of("B0", "B1", "B2", "B3"), ofB);
                assertEquals(failures == 1 ? 2 : 3, attempts.size());
                for (int i = 1; i < attempts.size(); i++) {
                    long gap = TimeUnit.NANOSECONDS.toMillis(attempts.get(i) - attempts.get(i - 1));
                    assertTrue(gap >= 990, "attempt " + i + " came after " + gap + " ms");
                }
                assertNotEquals(owners.get("A"), owners.get("B"), "the groups are not spread");
            }
            List<Message> dead = Mail.deadLetters(broker.url(), queue, failures == 1 ? 0 : 1);
            for (Message m : dead) {
                assertEquals("A", m.getStringProperty("JMSXGroupID"));
            }
        }
    }
}

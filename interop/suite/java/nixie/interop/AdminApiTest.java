package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What fails in applications, and what an operator then sees and does: C07, C11, C12, C14, C18, C19. */
@Reference.Beyond("the operator has our admin API")
class AdminApiTest {
    @RegisterExtension static final Broker broker = Broker.with("admin-api.xml");

    private static final String ALL = "{\"all\": true}";

    private static Operator operator() {
        return new Operator(broker.process());
    }

    private static String which(String id) {
        return "{\"ids\": [\"" + id + "\"]}";
    }

    /** Rolls n messages of a queue back, each until the client's limit of 1 is past; their labels, as they came. */
    private static List<String> failAll(String queue, int n, Look look) throws Exception {
        List<String> seen = new ArrayList<>();
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 2 * n; i++) {
                Message m = Mail.must(consumer);
                look.at(m);
                seen.add(Mail.label(m));
                s.rollback();
            }
            Mail.none(consumer);
        }
        return seen;
    }

    private interface Look {
        void at(Message m) throws JMSException;
    }

    private static void failAll(String queue, int n) throws Exception {
        failAll(queue, n, m -> { });
    }

    /** C07: what waits for its retry is seen, taken out by its id, and purged; it does not come back, after a restart neither. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void C07_purge_includes_what_waits_for_its_retry(boolean restart) throws Exception {
        String queue = Mail.unique("PURGE"); // a delay of 6 s
        Mail.send(broker.url(), queue, "a", "b", "c");
        Client c = Client.to(broker.url()).limit(0).open();
        Session s = c.transacted();
        MessageConsumer consumer = Client.consumer(s, queue);
        for (String text : List.of("a", "b", "c")) {
            assertEquals(text, Mail.next(consumer));
        }
        s.rollback();
        long due = System.nanoTime() + 6_000_000_000L;
        operator().await(queue, "messages=3 waiting=0 out=0 scheduled=3");
        assertEquals(List.of("scheduled", "scheduled", "scheduled"), operator().messages(queue, "state"));
        assertEquals(List.of("1", "1", "1"), operator().messages(queue, "attempts"));
        assertEquals(3, operator().messages(queue, "due").size());
        assertEquals(1, operator().act(queue, "purge", which(operator().messages(queue, "id").get(1))));
        operator().await(queue, "messages=2 scheduled=2");
        assertEquals(2, operator().act(queue, "purge", ALL));
        operator().await(queue, "messages=0 waiting=0 out=0 scheduled=0");
        if (restart) {
            Client.abandon(c.connection);
            broker.process().restart();
            c = Client.open(broker.url());
            consumer = Client.consumer(c.auto(), queue);
        }
        assertNull(consumer.receive(Math.max(0, due - System.nanoTime()) / 1_000_000 + 1000), "it came back");
        c.close();
        operator().await(queue, "messages=0 waiting=0 out=0 scheduled=0 deadLettered=0");
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** C11: every copy that fails is a dead letter of its own, and goes home to the queue that failed, and nowhere else. */
    @Test
    void C11_every_copy_goes_home() throws Exception {
        String topic = Mail.unique("VirtualTopic.T");
        String a = "Consumer.A." + topic;
        String b = "Consumer.B." + topic;
        try (Client c = Client.open(broker.url())) {
            for (String queue : List.of(a, b)) {
                Client.consumer(c.auto(), queue).close();
            }
        }
        Mail.send(broker.url(), "topic://" + topic, "m");
        Mail.send(broker.url(), "FAN", "m");
        Mail.send(broker.url(), "FAN.TO.SHARED", "m");
        List<String> queues = List.of(a, b, "OWN.A", "OWN.B", "SHARED.X", "SHARED.Y");
        for (int round = 0; round < 2; round++) {
            for (String queue : queues) {
                failAll(queue, 1, m -> assertNull(m.getObjectProperty(Mail.CAUSE)));
            }
            for (String queue : queues.subList(0, 4)) {
                operator().await("DLQ." + queue, "messages=1");
                assertEquals(1, operator().act("DLQ." + queue, "redrive", ALL));
            }
            operator().await(Mail.DLQ, "messages=2");
            assertEquals(2, operator().act(Mail.DLQ, "redrive", ALL));
            for (String queue : queues) {
                operator().await(queue, "messages=1");
            }
        }
        for (String queue : queues) {
            assertEquals(List.of("m#1"), Mail.take(broker.url(), queue, 1));
        }
    }

    /** C12: what two of three subscriptions cannot process is a dead letter of each, in the order of publication, and says whose. */
    @ParameterizedTest
    @CsvSource({"OWN, 200", "ONE, 20"})
    void C12_each_subscription_has_its_own_dead_letters(String stem, int n) throws Exception {
        String topic = Mail.unique(stem + ".feed");
        List<Client> clients = new ArrayList<>();
        List<String> names = new ArrayList<>();
        List<MessageConsumer> consumers = new ArrayList<>();
        List<Session> sessions = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            String id = Mail.unique("c" + i);
            Client c = Client.to(broker.url()).limit(0).clientId(id).open();
            Session s = c.transacted();
            clients.add(c);
            sessions.add(s);
            names.add(id + ":s" + i);
            consumers.add(s.createDurableSubscriber((Topic) Client.destination("topic://" + topic), "s" + i));
        }
        Mail.send(broker.url(), "topic://" + topic, Mail.numbered(n));
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(consumers.get(k))));
                if (k < 2 && i % 2 == 0) {
                    sessions.get(k).rollback();
                } else {
                    sessions.get(k).commit();
                }
            }
        }
        for (MessageConsumer consumer : consumers) {
            Mail.none(consumer);
        }
        List<String> even = IntStream.range(0, n / 2).mapToObj(i -> "m" + 2 * i).toList();
        Map<Object, List<String>> of = new HashMap<>();
        for (String dlq : stem.equals("OWN") ? names.subList(0, 2).stream().map(x -> "DLQ.T." + topic + "." + x).toList() : List.of("DLQ.T." + topic)) {
            Mail.awaitDepth(broker.url(), dlq, stem.equals("OWN") ? n / 2 : n);
            for (Message m : Mail.browse(broker.url(), dlq)) {
                assertTrue(stem.equals("ONE") || dlq.endsWith("." + m.getStringProperty("originalSubscription")), dlq);
                of.computeIfAbsent(m.getObjectProperty("originalSubscription"), x -> new ArrayList<>()).add(Mail.body(m));
            }
        }
        assertEquals(Map.of(names.get(0), even, names.get(1), even), of);
        for (int k = 0; k < 3; k++) {
            String at = "subscriptions/" + names.get(k).replace(":", "/") + "/messages";
            assertTrue(operator().look(at).matches("(?s).*\"total\": *0\\b.*"), operator().look(at));
            clients.get(k).close();
        }
    }

    /** C14: non-persistent messages that fail are dropped and counted, or kept where the strategy says so, and told of. */
    @Test
    void C14_non_persistent_dead_letters() throws Exception {
        String drop = Mail.unique("DROP");
        String keep = Mail.unique("KEEP");
        try (Watcher told = new Watcher(broker.url(), (Topic) Client.destination("topic://ActiveMQ.Advisory.MessageDLQd.>"))) {
            for (String queue : List.of(drop, keep)) {
                try (Client c = Client.open(broker.url())) {
                    Session s = c.auto();
                    MessageProducer p = Client.producer(s, queue);
                    p.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                    p.send(Mail.text(s, queue, "m0"));
                    p.send(Mail.text(s, queue, "m1"));
                }
                assertEquals(List.of("m0#1", "m0#2!", "m1#1", "m1#2!"), failAll(queue, 2, m -> { }));
            }
            operator().await(drop, "messages=0 deadLettered=0 discarded=2");
            operator().await(keep, "messages=0 deadLettered=2 discarded=0");
            for (int i = 0; i < 2; i++) {
                assertEquals("topic://ActiveMQ.Advisory.MessageDLQd.Queue." + keep, told.next().getJMSDestination().toString());
            }
            told.none();
        }
        broker.process().restart();
        List<Message> dead = Mail.deadLetters(broker.url(), keep, 2);
        assertEquals(List.of("m0", "m1"), Mail.bodies(dead));
        for (Message m : dead) {
            assertEquals(DeliveryMode.PERSISTENT, m.getJMSDeliveryMode());
            assertEquals("NON_PERSISTENT", m.getStringProperty("originalDeliveryMode"));
        }
        Mail.deadLetters(broker.url(), drop, 0);
    }

    /** C18: a dead letter goes home with a fresh count, from whatever dead letter queue, before and after a restart. */
    @ParameterizedTest
    @CsvSource({"SUFFIX, '', .dead", "BIN, ops.graveyard, ''", "PRE, DLQ., ''", "PLAIN, ActiveMQ.DLQ, ''"})
    void C18_retry_goes_home_with_a_fresh_count(String stem, String prefix, String suffix) throws Exception {
        String queue = Mail.unique(stem);
        String dlq = prefix.endsWith(".") || prefix.isEmpty() ? prefix + queue + suffix : prefix;
        Mail.send(broker.url(), queue, "x", "y", "z");
        Map<String, String> ids = new HashMap<>();
        failAll(queue, 3, m -> ids.put(Mail.body(m), m.getJMSMessageID()));
        operator().await(dlq, "messages=3");
        assertEquals(1, operator().act(dlq, "redrive", which(ids.get("z"))));
        broker.process().restart();
        assertEquals(2, operator().act(dlq, "redrive", ALL));
        assertEquals(List.of("z#1", "z#2!", "x#1", "x#2!", "y#1", "y#2!"), failAll(queue, 3, m -> {
            assertEquals(ids.get(Mail.body(m)), m.getJMSMessageID());
            assertEquals(queue, m.getStringProperty("origin"));
            assertFalse(m.propertyExists(Mail.CAUSE), "it carries the old cause");
        }));
        operator().await(dlq, "messages=3");
        assertEquals(3, operator().act(dlq, "redrive", ALL));
        assertEquals(List.of("z#1", "x#1", "y#1"), Mail.take(broker.url(), queue, 3));
        operator().await(queue, "messages=0 out=0");
        operator().await(dlq, "messages=0 out=0");
        if (stem.equals("PRE")) { // a queue that is none of the dead letters' has nothing to bring back
            Mail.send(broker.url(), queue, "plain");
            assertNotEquals(200, operator().refused(queue, "redrive", ALL));
            assertEquals(List.of("plain#1"), Mail.take(broker.url(), queue, 1));
        }
    }

    /** C18 step 3: where an operator has moved a message is where it fails, and where it comes home to. */
    @Test
    void C18_a_moved_message_comes_home_to_where_it_failed() throws Exception {
        String from = Mail.unique("PRE.Q");
        String to = Mail.unique("PRE.R");
        Mail.send(broker.url(), from, "m");
        assertEquals(1, operator().act(from, "move", "{\"to\": \"" + to + "\", \"all\": true}"));
        failAll(to, 1);
        operator().await("DLQ." + to, "messages=1");
        assertEquals(1, operator().act("DLQ." + to, "redrive", ALL));
        assertEquals(List.of("m#1"), Mail.take(broker.url(), to, 1));
        operator().await(from, "messages=0");
    }

    /** C19: a browser and an operator see all of a big dead letter queue, and what was removed is gone at once. */
    @Test
    void C19_a_big_dead_letter_queue() throws Exception {
        int n = 2000;
        String queue = Mail.unique("PRE.many");
        String dlq = "DLQ." + queue;
        try (Client c = Client.to(broker.url()).limit(0).prefetch(n).open()) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < n; i++) {
                Message m = Mail.text(s, queue, "m" + i);
                m.setIntProperty("n", i);
                p.send(m);
            }
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < n; i++) {
                Mail.must(consumer);
            }
            s.rollback();
            Mail.awaitDepth(broker.url(), dlq, n);
            Session auto = c.auto();
            assertEquals(List.of(Mail.numbered(n)), Mail.bodies(Mail.browse(auto, dlq, null)));
            Pace.keeps(() -> {
                long begin = System.nanoTime();
                assertEquals(List.of("m1999"), Mail.bodies(Mail.browse(auto, dlq, "n = 1999")));
                Pace.inTime(System.nanoTime() - begin < 2_000_000_000L, "one of 2,000 takes longer than 2 s to find");
            });
            assertEquals(List.of("2000"), operator().messages(dlq, "total"));
            String first = Mail.browse(auto, dlq, "n = 0").get(0).getJMSMessageID();
            assertEquals(1, operator().act(dlq, "purge", which(first)));
            assertEquals("m1", Mail.body(Mail.browse(auto, dlq, null).get(0)));
            assertFalse(operator().messages(dlq, "id").contains(first), "it is still listed");
            assertEquals(10, operator().act(dlq, "move", "{\"to\": \"FIXED.Q\", \"selector\": \"n >= 1990\"}"));
            assertEquals(99, operator().act(dlq, "purge", "{\"selector\": \"n < 100\"}"));
            operator().await(dlq, "messages=1890");
            operator().await("FIXED.Q", "messages=10");
            assertEquals(1890, Mail.browse(auto, dlq, null).size());
            assertEquals(10, Mail.browse(auto, "FIXED.Q", null).size());
        }
    }
}

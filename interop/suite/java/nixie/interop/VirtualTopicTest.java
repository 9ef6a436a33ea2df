package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
import java.util.TreeSet;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The virtual topic that a broker has without configuration: VirtualTopic.>, read from Consumer.NAME.VirtualTopic.> (R-VT-01 to 04). */
class VirtualTopicTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static String topic() {
        return Mail.unique("VirtualTopic.orders");
    }

    private static String queue(String application, String topic) {
        return "Consumer." + application + "." + topic;
    }

    /** A queue comes to be with its first consumer. */
    private static void make(String... queues) throws Exception {
        try (Client c = Client.open(broker.url())) {
            for (String queue : queues) {
                Client.consumer(c.auto(), queue).close();
            }
        }
    }

    /** Each application has a copy, however many consumers share its queue; a subscriber of the topic has one too. */
    @Test
    void a_copy_for_each_application() throws Exception {
        String topic = topic();
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            MessageConsumer plain = Client.consumer(c.auto(), "topic://" + topic);
            MessageConsumer billing = Client.consumer(c.auto(), queue("billing", topic));
            MessageConsumer one = Client.consumer(c.auto(), queue("stock", topic));
            MessageConsumer two = Client.consumer(c.auto(), queue("stock", topic));
            Mail.send(broker.url(), "topic://" + topic, Mail.numbered(6));
            for (int i = 0; i < 6; i++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(plain)));
                assertEquals("m" + i + "#1", Mail.label(Mail.must(billing)));
            }
            TreeSet<String> shared = new TreeSet<>();
            for (int i = 0; i < 3; i++) {
                shared.add(Mail.label(Mail.must(one)));
                shared.add(Mail.label(Mail.must(two)));
            }
            assertEquals("[m0#1, m1#1, m2#1, m3#1, m4#1, m5#1]", shared.toString());
            for (MessageConsumer each : List.of(plain, billing, one, two)) {
                Mail.none(each);
            }
        }
    }

    /** R-VT-02: all copies have the message's id; a copy's destination is its queue, and the topic its original one. */
    @Test
    void what_a_copy_says() throws Exception {
        String topic = topic();
        make(queue("a", topic), queue("b", topic));
        String id;
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = Mail.text(s, topic, "m0");
            m.setJMSCorrelationID("c0");
            m.setJMSReplyTo(s.createQueue("replies"));
            Client.producer(s, "topic://" + topic).send(m, DeliveryMode.PERSISTENT, 7, 60_000);
            id = m.getJMSMessageID();
            assertEquals(Client.destination("topic://" + topic), m.getJMSDestination(), "what the sender sees");
        }
        try (Client c = Client.open(broker.url())) {
            for (String application : List.of("a", "b")) {
                ActiveMQMessage m = (ActiveMQMessage) Mail.must(Client.consumer(c.auto(), queue(application, topic)));
                assertEquals(id, m.getJMSMessageID());
                assertEquals(Client.destination(queue(application, topic)), m.getJMSDestination());
                assertEquals(Client.destination("topic://" + topic), m.getOriginalDestination());
                assertEquals("c0", m.getJMSCorrelationID());
                assertEquals(Client.destination("replies"), m.getJMSReplyTo());
                assertEquals(7, m.getJMSPriority());
                assertEquals(60_000, m.getJMSExpiration() - m.getJMSTimestamp());
            }
        }
    }

    /** R-VT-01: a queue gets what is sent while it is there, with or without consumers; what comes later does not see the past. */
    @Test
    void only_queues_that_are_there() throws Exception {
        String topic = topic();
        make(queue("early", topic));
        Mail.send(broker.url(), "topic://" + topic, "m0");
        make(queue("late", topic));
        Mail.send(broker.url(), "topic://" + topic, "m1");
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), queue("early", topic), 2));
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), queue("late", topic), 1));
    }

    /** Who fails is alone with its failures: its copy comes again, and dies; the other application and the topic know nothing of it. */
    @Test
    void one_application_fails() throws Exception {
        String topic = topic();
        String bad = queue("bad", topic);
        String good = queue("good", topic);
        make(bad, good);
        try (Client c = Client.to(broker.url()).limit(2).open()) {
            Session s = c.transacted();
            MessageConsumer failing = Client.consumer(s, bad);
            MessageConsumer subscriber = Client.consumer(c.auto(), "topic://" + topic);
            Mail.send(broker.url(), "topic://" + topic, "m0", "m1");
            for (String want : List.of("m0#1", "m0#2!", "m0#3!")) {
                assertEquals(want, Mail.label(Mail.must(failing)));
                s.rollback();
            }
            assertEquals("m1#1", Mail.label(Mail.must(failing)));
            s.commit();
            assertEquals(List.of("m0#1", "m1#1"), Mail.drain(subscriber, 2));
        }
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), good, 2));
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), "topic://" + topic, 1).get(0);
        assertEquals("m0", Mail.body(dead));
        assertEquals(Client.destination(bad), dead.getOriginalDestination(), "R-VT-04: where it failed");
        Mail.awaitDepth(broker.url(), bad, 0);
    }

    /** R-EDGE-03, C11: the copies have one id, and each is a dead letter of its own. */
    @Test
    @Reference.Beyond("R-EDGE-03: the second dead letter of one id is dropped")
    void every_application_fails() throws Exception {
        String topic = topic();
        String[] queues = {queue("a", topic), queue("b", topic), queue("c", topic)};
        make(queues);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        TreeSet<String> origins = new TreeSet<>();
        TreeSet<String> want = new TreeSet<>();
        for (String queue : queues) {
            want.add("queue://" + queue);
            try (Client c = Client.to(broker.url()).limit(0).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queue);
                assertEquals("m0#1", Mail.label(Mail.must(consumer)));
                s.rollback();
                Mail.none(consumer);
            }
        }
        for (Message m : Mail.deadLetters(broker.url(), "topic://" + topic, 3)) {
            origins.add(((ActiveMQMessage) m).getOriginalDestination().toString());
        }
        assertEquals(want, origins);
    }

    /** A wildcard consumer is an application with one queue for all these topics, which gathers while it is away. */
    @ParameterizedTest
    @CsvSource({"*,'east,west','east.north'", ">,'east,west,east.north',''"})
    void one_queue_for_several_topics(String wildcard, String match, String other) throws Exception {
        String base = Mail.unique("VirtualTopic.region");
        String application = queue("all", base + "." + wildcard);
        make(application);
        for (String name : other.split(",")) {
            if (!name.isEmpty()) {
                Mail.send(broker.url(), "topic://" + base + "." + name, "no");
            }
        }
        for (String name : match.split(",")) {
            Mail.send(broker.url(), "topic://" + base + "." + name, name);
        }
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), application);
            for (String name : match.split(",")) {
                assertEquals(name + "#1", Mail.label(Mail.must(consumer)));
            }
            Mail.none(consumer);
        }
    }

    /** A consumer of several applications' queues by a wildcard in the application's place. */
    @Test
    void a_wildcard_over_applications() throws Exception {
        String topic = topic();
        make(queue("a", topic), queue("b", topic));
        try (Client c = Client.open(broker.url())) {
            Mail.send(broker.url(), "topic://" + topic, "m0");
            MessageConsumer all = Client.consumer(c.auto(), "Consumer.*." + topic);
            assertEquals(List.of("m0#1", "m0#1"), Mail.drain(all, 2));
        }
        Mail.awaitDepth(broker.url(), queue("a", topic), 0);
        Mail.awaitDepth(broker.url(), queue("b", topic), 0);
    }

    /** A transaction over two virtual topics and a queue: nothing before the commit, nothing after a rollback. */
    @Test
    void in_a_transaction() throws Exception {
        String one = topic();
        String two = topic();
        String other = Mail.unique("other");
        String[] queues = {queue("a", one), queue("b", one), queue("a", two)};
        make(queues);
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            for (String text : List.of("gone", "m0")) {
                Mail.send(s, "topic://" + one, text);
                Mail.send(s, "topic://" + two, text);
                Mail.send(s, other, text);
                for (String queue : queues) {
                    assertEquals(0, Mail.browse(broker.url(), queue).size(), text + " before its commit");
                }
                if (text.equals("gone")) {
                    s.rollback();
                }
            }
            s.commit();
        }
        for (String queue : queues) {
            assertEquals(List.of("m0#1"), Mail.take(broker.url(), queue, 1));
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), other, 1));
    }

    /** A send to several virtual topics at once (R-VT-05), and a consumer of several applications' queues. */
    @Test
    @Reference.Beyond("a range is looked up by ids, which the copies share")
    void composites_of_virtual_topics() throws Exception {
        String one = topic();
        String two = topic();
        make(queue("a", one), queue("a", two));
        Mail.send(broker.url(), "topic://" + one + ",topic://" + two, "m0");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer both = Client.consumer(s, queue("a", one) + "," + queue("a", two));
            TreeSet<String> from = new TreeSet<>();
            for (int i = 0; i < 2; i++) {
                Message m = Mail.must(both);
                assertEquals("m0#1", Mail.label(m));
                from.add(m.getJMSDestination().toString());
            }
            assertEquals(2, from.size(), "one from each: " + from);
            s.commit();
        }
        Mail.awaitDepth(broker.url(), queue("a", one), 0);
        Mail.awaitDepth(broker.url(), queue("a", two), 0);
    }

    /** Without selectorAware a queue gets everything, and what its consumers do not select stays in it. */
    @Test
    void a_selector_leaves_the_rest() throws Exception {
        String topic = topic();
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer some = s.createConsumer(Client.destination(queue("a", topic)), "JMSCorrelationID = 'yes'");
            MessageProducer p = Client.producer(s, "topic://" + topic);
            for (String text : List.of("no", "yes")) {
                Message m = Mail.text(s, topic, text);
                m.setJMSCorrelationID(text);
                p.send(m);
            }
            assertEquals("yes", Mail.next(some));
            Mail.none(some);
        }
        assertEquals(List.of("no#1"), Mail.take(broker.url(), queue("a", topic), 1));
    }

    /** Every copy expires by itself, from its own queue. */
    @Test
    @Reference.Beyond("R-EDGE-03: the second dead letter of one id is dropped")
    void copies_expire() throws Exception {
        String topic = topic();
        make(queue("a", topic), queue("b", topic));
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Client.producer(s, "topic://" + topic).send(Mail.text(s, topic, "brief"), DeliveryMode.PERSISTENT, 4, 300);
            Mail.send(s, "topic://" + topic, "long");
            Thread.sleep(500);
            assertEquals("long", Mail.next(Client.consumer(s, queue("a", topic))));
            assertEquals("long", Mail.next(Client.consumer(s, queue("b", topic))));
        }
        assertEquals(2, Mail.deadLetters(broker.url(), topic, 2).size());
    }

    /** A durable subscription to the topic gets its copy beside the queues. */
    @Test
    void beside_a_durable_subscription() throws Exception {
        String topic = topic();
        make(queue("a", topic));
        try (Client c = Client.to(broker.url()).clientId(Mail.unique("client")).open()) {
            Session s = c.auto();
            s.createDurableSubscriber(s.createTopic(topic), "sub").close();
            Mail.send(broker.url(), "topic://" + topic, "m0");
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            assertEquals(List.of("m0#1"), Mail.drain(sub, 1));
            sub.close();
            s.unsubscribe("sub");
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), queue("a", topic), 1));
    }

    /** Queues of virtual topics, and what is in them, outlive the process; the topic finds them again. */
    @ParameterizedTest
    @CsvSource({"false", "true"})
    void over_a_restart(boolean kill) throws Exception {
        try (BrokerProcess own = Broker.own("virtual")) {
            String topic = topic();
            try (Client c = Client.open(own.url())) {
                Client.consumer(c.auto(), queue("a", topic)).close();
            }
            Mail.send(own.url(), "topic://" + topic, "m0");
            if (kill) {
                own.kill();
                own.start();
            } else {
                own.restart();
            }
            Mail.send(own.url(), "topic://" + topic, "m1");
            assertEquals(List.of("m0#1", "m1#1"), Mail.take(own.url(), queue("a", topic), 2));
        }
    }

    /** What a listener of one copy publishes to the topic again has an id of its own. */
    @Test
    void passed_on_by_a_consumer() throws Exception {
        String first = topic();
        String second = topic();
        make(queue("a", first), queue("a", second));
        Mail.send(broker.url(), "topic://" + first, "m0");
        String before;
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Message m = Mail.must(Client.consumer(s, queue("a", first)));
            before = m.getJMSMessageID();
            Client.producer(s, "topic://" + second).send(m);
            s.commit();
            Message again = Mail.must(Client.consumer(s, queue("a", second)));
            assertEquals("m0#1", Mail.label(again));
            assertNotEquals(before, again.getJMSMessageID());
            assertEquals(Client.destination(queue("a", second)), again.getJMSDestination());
            s.commit();
        }
    }
}

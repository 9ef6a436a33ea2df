package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ResourceAllocationException;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Virtual topics and composite destinations that an activemq.xml names (R-VT-01 to 05). */
class VirtualDestinationTest {
    @RegisterExtension static final Broker broker = Broker.with("virtual.xml");

    private static void make(String... queues) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            for (String queue : queues) {
                Client.consumer(c.auto(), queue).close();
            }
        }
    }

    /** Sends a message with properties that filters look at. */
    private static void send(Session s, String name, String text, String region, int weight) throws JMSException {
        MessageProducer p = Client.producer(s, name);
        Message m = Mail.text(s, name, text);
        m.setStringProperty("region", region);
        m.setIntProperty("weight", weight);
        p.send(m);
        p.close();
    }

    /** prefix and postfix make the queues' names, around the topic's. */
    @Test
    void prefix_and_postfix() throws Exception {
        String topic = Mail.unique("Feed.orders");
        String queue = "App.a." + topic + ".Inbox";
        make(queue, "App.b." + topic, "Consumer.c." + topic);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), queue, 1));
        assertEquals(List.of(), Mail.take(broker.url(), "App.b." + topic, 0), "without the postfix");
        assertEquals(List.of(), Mail.take(broker.url(), "Consumer.c." + topic, 0), "the default prefix");
    }

    /** What the configuration names takes the place of the built-in virtual topic. */
    @Test
    void instead_of_the_built_in() throws Exception {
        String topic = Mail.unique("VirtualTopic.orders");
        make("Consumer.a." + topic);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        assertEquals(List.of(), Mail.take(broker.url(), "Consumer.a." + topic, 0));
    }

    /** R-VT-03, C11: each application's failures go to a dead letter queue of its own, though the copies have one id. */
    @Test
    void dead_letters_of_their_own() throws Exception {
        String topic = Mail.unique("Feed.poison");
        String[] queues = {"App.a." + topic + ".Inbox", "App.b." + topic + ".Inbox", "App.ok." + topic + ".Inbox"};
        make(queues);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        for (int i = 0; i < 2; i++) {
            try (Client c = Client.to(broker.url()).limit(1).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queues[i]);
                assertEquals("m0#1", Mail.label(Mail.must(consumer)));
                s.rollback();
                assertEquals("m0#2!", Mail.label(Mail.must(consumer)));
                s.rollback();
                Mail.none(consumer);
            }
            Mail.awaitDepth(broker.url(), "DLQ." + queues[i], 1);
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), queues[2], 1));
        for (int i = 0; i < 2; i++) {
            ActiveMQMessage dead = (ActiveMQMessage) Mail.browse(broker.url(), "DLQ." + queues[i]).get(0);
            assertEquals(Client.destination(queues[i]), dead.getOriginalDestination());
        }
    }

    /** selectorAware: a queue gets only what one of its consumers selects now, and nothing while it has none. */
    @Test
    void selector_aware() throws Exception {
        String topic = Mail.unique("Aware.orders");
        String idle = "Pick.idle." + topic;
        String busy = "Pick.busy." + topic;
        make(idle, busy);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer some = s.createConsumer(Client.destination(busy), "weight > 5");
            for (int i = 0; i < 10; i++) {
                send(s, "topic://" + topic, "m" + i, "eu", i);
            }
            assertEquals(List.of("m6#1", "m7#1", "m8#1", "m9#1"), Mail.drain(some, 4));
        }
        assertEquals(List.of(), Mail.take(broker.url(), idle, 0));
        assertEquals(List.of(), Mail.take(broker.url(), busy, 0), "what no consumer selected was not stored");
    }

    /** R-VT-06: dropOnResourceLimit leaves out the queue that is full; without it the send fails. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void a_full_queue(boolean drop) throws Exception {
        String topic = Mail.unique(drop ? "Busy.orders" : "Firm.orders");
        String full = "Stuck.full." + topic;
        String other = "Stuck.other." + topic;
        make(full, other);
        int sent = 0;
        boolean failed = false;
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(c.auto(), other);
            MessageProducer p = Client.producer(s, "topic://" + topic);
            for (int i = 0; i < 20 && !failed; i++) {
                try {
                    p.send(Mail.text(s, topic, "m" + i + "-".repeat(4000)));
                    sent++;
                    assertEquals("m" + i, Mail.next(consumer).split("-")[0]);
                } catch (ResourceAllocationException e) {
                    failed = true;
                }
            }
        }
        int kept = Mail.browse(broker.url(), full).size();
        assertTrue(kept >= 1 && kept < 20, "the full queue has " + kept);
        assertEquals(drop ? 20 : kept, sent);
        assertEquals(!drop, failed);
        assertEquals(kept, Mail.take(broker.url(), full, kept).size());
    }

    /** setOriginalDestination=false: a copy's destination is the topic. */
    @Test
    void the_topic_as_destination() throws Exception {
        String topic = Mail.unique("Plain.orders");
        String queue = "Keep.a." + topic;
        make(queue);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        try (Client c = Client.open(broker.url())) {
            ActiveMQMessage m = (ActiveMQMessage) Mail.must(Client.consumer(c.auto(), queue));
            assertEquals(Client.destination("topic://" + topic), m.getJMSDestination());
            assertNull(m.getOriginalDestination());
        }
    }

    /** forwardOnly is the default: the composite itself keeps nothing. A copy tells where it was sent to. */
    @Test
    void forward_only() throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer feed = Client.consumer(c.auto(), "topic://ORDERS.FEED");
            Mail.send(s, "ORDERS", "m0");
            ActiveMQMessage copy = (ActiveMQMessage) Mail.must(Client.consumer(s, "ORDERS.BILLING"));
            assertEquals("m0#1", Mail.label(copy));
            assertEquals(Client.destination("ORDERS.BILLING"), copy.getJMSDestination());
            assertEquals(Client.destination("ORDERS"), copy.getOriginalDestination());
            assertEquals("m0#1", Mail.label(Mail.must(feed)));
            Mail.none(Client.consumer(s, "ORDERS"));
        }
    }

    @Test
    void forward_and_keep() throws Exception {
        Mail.send(broker.url(), "BOTH", "m0", "m1");
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), "BOTH", 2));
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), "BOTH.COPY", 2));
    }

    /** A composite topic keeps its subscribers, fills a queue, and leads to a virtual topic. */
    @Test
    void a_composite_topic() throws Exception {
        make("App.a.Feed.news.Inbox");
        try (Client c = Client.open(broker.url())) {
            MessageConsumer subscriber = Client.consumer(c.auto(), "topic://NEWS");
            Mail.send(broker.url(), "topic://NEWS", "m0");
            assertEquals("m0#1", Mail.label(Mail.must(subscriber)));
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), "NEWS.ARCHIVE", 1));
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), "App.a.Feed.news.Inbox", 1));
    }

    /** forwardOnly of a topic: its subscribers get nothing. */
    @Test
    void a_silent_topic() throws Exception {
        try (Client c = Client.open(broker.url())) {
            MessageConsumer subscriber = Client.consumer(c.auto(), "topic://QUIET");
            Mail.send(broker.url(), "topic://QUIET", "m0");
            assertEquals(List.of("m0#1"), Mail.take(broker.url(), "QUIET.ARCHIVE", 1));
            Mail.none(subscriber);
        }
    }

    /** filteredDestination: each target has a selector; what none selects goes nowhere. */
    @Test
    void filtered() throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer news = Client.consumer(c.auto(), "topic://SORT.NEWS");
            send(s, "SORT", "light.eu", "eu", 1);
            send(s, "SORT", "heavy.eu", "eu", 11);
            send(s, "SORT", "light.us", "us", 1);
            send(s, "SORT", "light.jp", "jp", 1);
            assertEquals(List.of("light.eu#1", "heavy.eu#1"), Mail.drain(news, 2));
        }
        assertEquals(List.of("light.eu#1", "heavy.eu#1"), Mail.take(broker.url(), "SORT.EU", 2));
        assertEquals(List.of("heavy.eu#1", "light.us#1"), Mail.take(broker.url(), "SORT.US", 2));
        assertEquals(List.of(), Mail.take(broker.url(), "SORT", 0));
    }

    /** sendWhenNotMatched: what no filter selects stays. */
    @Test
    void not_matched() throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            send(s, "REST", "m0", "eu", 1);
            send(s, "REST", "m1", "us", 1);
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), "REST.EU", 1));
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), "REST", 1));
    }

    /** copyMessage=false changes nothing of what a consumer sees. */
    @Test
    void the_same_message() throws Exception {
        Mail.send(broker.url(), "SAME", "m0");
        try (Client c = Client.open(broker.url())) {
            ActiveMQMessage m = (ActiveMQMessage) Mail.must(Client.consumer(c.auto(), "SAME.TARGET"));
            assertEquals(Client.destination("SAME.TARGET"), m.getJMSDestination());
            assertEquals(Client.destination("SAME"), m.getOriginalDestination());
        }
    }

    /** A composite's name may be a pattern. */
    @Test
    void a_pattern() throws Exception {
        String one = "MANY.one" + System.nanoTime();
        Mail.send(broker.url(), one, "m0");
        Mail.send(broker.url(), one + ".deeper", "m1");
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), "TAPPED", 1));
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), one, 1));
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), one + ".deeper", 1));
    }

    /** The copies are one unit with the rest of the transaction. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void in_a_transaction(boolean commit) throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, "BOTH", "m0");
            assertEquals(0, Mail.browse(broker.url(), "BOTH").size() + Mail.browse(broker.url(), "BOTH.COPY").size());
            if (commit) {
                s.commit();
            } else {
                s.rollback();
            }
        }
        List<String> want = commit ? List.of("m0#1") : List.of();
        assertEquals(want, Mail.take(broker.url(), "BOTH", want.size()));
        assertEquals(want, Mail.take(broker.url(), "BOTH.COPY", want.size()));
    }

    /** The copy of one target fails alone, and its dead letter says which one that was. */
    @Test
    void one_copy_fails() throws Exception {
        Mail.send(broker.url(), "BOTH", "poison");
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, "BOTH.COPY");
            assertEquals("poison#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            Mail.none(consumer);
        }
        assertEquals(List.of("poison#1"), Mail.take(broker.url(), "BOTH", 1));
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), "BOTH", 1).get(0);
        assertEquals(Client.destination("BOTH.COPY"), dead.getOriginalDestination());
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Topics, durable subscriptions (R-CNT-20 to 22, R-DUR), wildcards and composite destinations. */
class TopicTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @Test
    void one_to_ten() throws Exception {
        String topic = "topic://" + Mail.unique("fan");
        try (Client c = Client.open(broker.url())) {
            List<MessageConsumer> subscribers = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                subscribers.add(Client.consumer(c.auto(), topic));
            }
            Mail.send(broker.url(), topic, Mail.numbered(5));
            for (MessageConsumer subscriber : subscribers) {
                assertEquals(List.of("m0#1", "m1#1", "m2#1", "m3#1", "m4#1"), drainQuickly(subscriber, 5));
            }
        }
    }

    private static List<String> drainQuickly(MessageConsumer c, int n) throws JMSException {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            out.add(Mail.label(Mail.must(c)));
        }
        assertEquals("none", Mail.label(c.receiveNoWait()));
        return out;
    }

    @Test
    void no_local() throws Exception {
        String topic = "topic://" + Mail.unique("local");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer deaf = s.createConsumer(Client.destination(topic), null, true);
            Mail.send(s, topic, "own");
            Mail.send(broker.url(), topic, "other");
            assertEquals(List.of("other#1"), Mail.drain(deaf, 1));
        }
    }

    /** R-MAP-02: a star is one step, an arrow any number of them. */
    @ParameterizedTest
    @CsvSource({"queue,*,'a.b', 'a'", "queue,>,'a.b,a,a.b.c', 'z'", "topic,*,'a.b','a.b.c'", "topic,>,'a,a.b.c',''"})
    void wildcards(String kind, String wildcard, String match, String other) throws Exception {
        String base = Mail.unique("wild");
        String pattern = wildcard.equals("*") ? base + ".a.*" : base + ".a.>";
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), kind + "://" + pattern);
            for (String name : other.split(",")) {
                if (!name.isEmpty()) {
                    Mail.send(broker.url(), kind + "://" + base + "." + name, "no");
                }
            }
            List<String> want = new ArrayList<>();
            for (String name : match.split(",")) {
                Mail.send(broker.url(), kind + "://" + base + "." + name, name);
                want.add(name + "#1");
            }
            assertEquals(want, Mail.drain(consumer, want.size()));
        }
    }

    /** R-VT-05: a send to "A,topic://B" reaches both. */
    @Test
    void composite_destination() throws Exception {
        String a = Mail.unique("a");
        String b = Mail.unique("b");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer subscriber = Client.consumer(s, "topic://" + b);
            s.createProducer(Client.destination(a + ",topic://" + b)).send(s.createTextMessage("both"));
            assertEquals("both", Mail.next(subscriber));
        }
        assertEquals(List.of("both#1"), Mail.take(broker.url(), a, 1));
    }

    /** A durable subscription gathers while its subscriber is away. */
    @Test
    void durable_offline() throws Exception {
        String topic = Mail.unique("topic");
        String id = Mail.unique("client");
        subscribe(id, topic, 0);
        Mail.send(broker.url(), "topic://" + topic, Mail.numbered(30));
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            for (int i = 0; i < 30; i++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(sub)));
            }
            Mail.none(sub);
        }
        unsubscribe(id);
    }

    private static void subscribe(String id, String topic, int read) throws JMSException {
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            for (int i = 0; i < read; i++) {
                assertEquals("m" + i, Mail.next(sub));
            }
        }
    }

    private static void unsubscribe(String id) throws JMSException {
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            c.auto().unsubscribe("sub");
        }
    }

    /** R-DUR-03, R-CNT-20: what was read and not acknowledged comes first and counted, over several closes. */
    @Test
    void durable_redelivery_after_close() throws Exception {
        String topic = Mail.unique("topic");
        String id = Mail.unique("client");
        subscribe(id, topic, 0);
        Mail.send(broker.url(), "topic://" + topic, Mail.numbered(5));
        subscribe(id, topic, 2);
        subscribe(id, topic, 1);
        subscribe(id, topic, 1);
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            assertEquals(List.of("m0#4!", "m1#2!", "m2#1", "m3#1", "m4#1"), Mail.drain(sub, 5));
        }
        unsubscribe(id);
    }

    /** Unsubscribed means gone: nothing gathers, and the next subscription starts empty. */
    @Test
    void durable_unsubscribe() throws Exception {
        String topic = Mail.unique("topic");
        String id = Mail.unique("client");
        subscribe(id, topic, 0);
        Mail.send(broker.url(), "topic://" + topic, "m0");
        unsubscribe(id);
        Mail.send(broker.url(), "topic://" + topic, "m1");
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            Mail.none(sub);
            assertThrows(JMSException.class, () -> s.unsubscribe("sub"), "still active");
            sub.close();
            s.unsubscribe("sub");
            assertThrows(JMSException.class, () -> s.unsubscribe("sub"), "not there any more");
        }
    }

    /** One subscription, one subscriber at a time. */
    @Test
    void durable_in_use() throws Exception {
        String topic = Mail.unique("topic");
        try (Client c = Client.to(broker.url()).clientId(Mail.unique("client")).open()) {
            Session s = c.auto();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            Session other = c.auto();
            assertThrows(JMSException.class, () -> other.createDurableSubscriber(other.createTopic(topic), "sub"));
            Mail.send(broker.url(), "topic://" + topic, "m0");
            assertEquals("m0", Mail.next(sub));
            sub.close();
            s.unsubscribe("sub");
        }
    }

    /** A selector on a durable subscription; another selector makes it a new subscription. */
    @Test
    void durable_selector() throws Exception {
        String topic = Mail.unique("topic");
        String id = Mail.unique("client");
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            s.createDurableSubscriber(s.createTopic(topic), "sub", "JMSCorrelationID = 'yes'", false).close();
            MessageConsumer none = s.createDurableSubscriber(s.createTopic(topic), "sub", "JMSCorrelationID = 'yes'", false);
            var p = Client.producer(s, "topic://" + topic);
            for (String id2 : List.of("no", "yes", "no", "yes")) {
                var m = s.createTextMessage(id2);
                m.setJMSCorrelationID(id2);
                p.send(m);
            }
            assertEquals("yes#1", Mail.label(Mail.must(none)));
            none.close();
            MessageConsumer changed = s.createDurableSubscriber(s.createTopic(topic), "sub", "JMSCorrelationID = 'no'", false);
            Mail.none(changed);
            changed.close();
            s.unsubscribe("sub");
        }
    }

    /** Two durable subscriptions of a topic are apart: one acknowledges, the other does not. */
    @Test
    void durables_are_apart() throws Exception {
        String topic = Mail.unique("topic");
        try (Client c = Client.to(broker.url()).clientId(Mail.unique("client")).open()) {
            Session s = c.transacted();
            MessageConsumer a = s.createDurableSubscriber(s.createTopic(topic), "a");
            Session t = c.transacted();
            MessageConsumer b = t.createDurableSubscriber(t.createTopic(topic), "b");
            Mail.send(broker.url(), "topic://" + topic, "m0");
            Mail.must(a);
            Mail.must(b);
            s.commit();
            t.rollback();
            Mail.none(a);
            assertEquals("m0#2!", Mail.label(Mail.must(b)));
            t.commit();
            a.close();
            b.close();
            s.unsubscribe("a");
            s.unsubscribe("b");
        }
    }

    /** R-CNT-22: a plain topic subscriber starts with what is sent after it, and rolls back by itself. */
    @Test
    void plain_subscriber_rolls_back() throws Exception {
        String topic = "topic://" + Mail.unique("plain");
        Mail.send(broker.url(), topic, "before");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer sub = Client.consumer(s, topic);
            Mail.send(broker.url(), topic, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(sub)));
            s.rollback();
            assertEquals("m0#2!", Mail.label(Mail.must(sub)));
            s.commit();
            Mail.none(sub);
        }
    }

    /** Small topic prefetch: a subscriber that is slow gets everything in the end. */
    @Test
    void slow_subscriber() throws Exception {
        String topic = "topic://" + Mail.unique("slow");
        try (Client c = Client.to(broker.url()).prefetch(2).open()) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer sub = Client.consumer(s, topic);
            Mail.send(broker.url(), topic, Mail.numbered(50));
            for (int i = 0; i < 50; i++) {
                var m = Mail.must(sub);
                assertEquals("m" + i, Mail.body(m));
                m.acknowledge();
            }
        }
    }

    /** The provider's own acknowledge mode exists in all clients. */
    @Test
    void individual_mode_is_four() {
        assertNotNull(ActiveMQSession.class);
        assertEquals(4, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
    }
}

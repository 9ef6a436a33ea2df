package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a destination's ?consumer. options ask for: the client reads them and asks the broker (R-EXC-01). */
class ConsumerOptionsTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static List<String> received(MessageConsumer c, int n) throws Exception {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            out.add(Mail.next(c));
        }
        Mail.none(c);
        return out;
    }

    @Test
    void exclusive() throws Exception {
        String queue = Mail.unique("exclusive");
        try (Client one = Client.open(broker.url()); Client two = Client.open(broker.url()); Client three = Client.open(broker.url())) {
            Client.consumer(one.auto(), queue).close();
            MessageConsumer plain = Client.consumer(one.auto(), queue);
            MessageConsumer owner = Client.consumer(two.session(Session.CLIENT_ACKNOWLEDGE), queue + "?consumer.exclusive=true");
            MessageConsumer next = Client.consumer(three.auto(), queue + "?consumer.exclusive=true");
            Mail.send(broker.url(), queue, Mail.numbered(4));
            assertEquals(List.of("m0", "m1", "m2", "m3"), received(owner, 4));
            Mail.none(plain);
            Mail.none(next);
            two.close();
            assertEquals(List.of("m0", "m1", "m2", "m3"), received(next, 4), "what the owner had not acknowledged, in order");
            Mail.none(plain);
        }
    }

    /** R-EXC-01: one of higher priority takes over at once. */
    @Test
    void exclusive_with_priority() throws Exception {
        String queue = Mail.unique("superior");
        try (Client one = Client.open(broker.url()); Client two = Client.open(broker.url())) {
            MessageConsumer owner = Client.consumer(one.auto(), queue + "?consumer.exclusive=true");
            Mail.send(broker.url(), queue, "m0");
            assertEquals("m0", Mail.next(owner));
            MessageConsumer above = Client.consumer(two.auto(), queue + "?consumer.exclusive=true&consumer.priority=10");
            Mail.send(broker.url(), queue, "m1");
            assertEquals("m1", Mail.next(above));
            Mail.none(owner);
            above.close();
            Mail.send(broker.url(), queue, "m2");
            assertEquals("m2", Mail.next(owner));
        }
    }

    /** jms.exclusiveConsumer, for all consumers of a connection; an exclusive one has everything, whatever the message groups. */
    @Test
    void exclusive_by_the_connection() throws Exception {
        String queue = Mail.unique("exclusive.groups");
        try (Client one = Client.open(broker.url() + "?jms.exclusiveConsumer=true"); Client two = Client.open(broker.url() + "?jms.exclusiveConsumer=true")) {
            MessageConsumer owner = Client.consumer(one.auto(), queue);
            MessageConsumer next = Client.consumer(two.auto(), queue);
            Session s = two.auto();
            for (String text : List.of("a0", "b0", "a1", "b1")) {
                Message m = Mail.text(s, queue, text);
                m.setStringProperty("JMSXGroupID", text.substring(0, 1));
                Client.producer(s, queue).send(m);
            }
            assertEquals(List.of("a0", "b0", "a1", "b1"), received(owner, 4));
            Mail.none(next);
        }
    }

    /** A consumer of higher priority is served while its window has room, then the next one. */
    @Test
    void priority() throws Exception {
        String queue = Mail.unique("ranked");
        try (Client c = Client.open(broker.url()); Client d = Client.open(broker.url())) {
            Session low = c.session(Session.CLIENT_ACKNOWLEDGE);
            Session high = d.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer second = Client.consumer(low, queue + "?consumer.priority=1");
            MessageConsumer first = Client.consumer(high, queue + "?consumer.priority=5&consumer.prefetchSize=3");
            Mail.send(broker.url(), queue, Mail.numbered(5));
            assertEquals("m0", Mail.next(first));
            assertEquals("m3", Mail.next(second), "three are with the first");
            assertEquals("m4", Mail.next(second));
            assertEquals("m1", Mail.next(first));
        }
    }

    @Test
    void prefetch_selector_and_no_local() throws Exception {
        String queue = Mail.unique("options");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            ActiveMQMessageConsumer k = (ActiveMQMessageConsumer) Client.consumer(s, queue + "?consumer.prefetchSize=7&consumer.dispatchAsync=false&consumer.selector=JMSCorrelationID='yes'");
            assertEquals(7, k.getPrefetchNumber());
            for (String text : List.of("no", "yes")) {
                Message m = Mail.text(s, queue, text);
                m.setJMSCorrelationID(text);
                Client.producer(s, queue).send(m);
            }
            assertEquals(List.of("yes"), received(k, 1));
            String topic = "topic://" + Mail.unique("own");
            MessageConsumer deaf = Client.consumer(s, topic + "?consumer.noLocal=true");
            Mail.send(s, topic, "own");
            Mail.send(broker.url(), topic, "other");
            assertEquals(List.of("other"), received(deaf, 1));
            queue = Mail.unique("own");
            deaf = Client.consumer(s, queue + "?consumer.noLocal=true");
            Mail.send(s, queue, "own");
            Mail.send(broker.url(), queue, "other");
            assertEquals(List.of("other"), received(deaf, 1));
            assertEquals(List.of("own#1"), Mail.take(broker.url(), queue, 1));
        }
    }

    /** A durable subscription does not store what its own connection sends, also while its consumer is away. */
    @Test
    void durable_no_local() throws Exception {
        String topic = Mail.unique("own.durable");
        try (Client c = Client.to(broker.url()).clientId(Mail.unique("client")).open()) {
            Session s = c.auto();
            MessageConsumer k = s.createDurableSubscriber(s.createTopic(topic), "sub", null, true);
            Mail.send(s, "topic://" + topic, "own");
            Mail.send(broker.url(), "topic://" + topic, "other");
            assertEquals(List.of("other"), received(k, 1));
            k.close();
            Mail.send(s, "topic://" + topic, "own");
            Mail.send(broker.url(), "topic://" + topic, "later");
            k = s.createDurableSubscriber(s.createTopic(topic), "sub", null, true);
            assertEquals(List.of("later"), received(k, 1));
            k.close();
            s.unsubscribe("sub");
        }
    }
}

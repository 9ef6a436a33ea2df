package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.Topic;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Dead letter strategies of a file (sections 5.2 and 5.3): where dead letters go, for how long, and by hand from there. */
@Reference.Beyond("R-DLS-23, R-EDGE-26")
class StrategyTest {
    @RegisterExtension static final Broker broker = Broker.with("strategies.xml");

    /** Sends and fails a message for good. */
    private static void poison(String queue, int mode) throws Exception {
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            Client.producer(s, queue).send(Mail.text(s, queue, "m"), mode, 4, 0);
            s.commit();
            fail(s, queue);
        }
    }

    private static void fail(Session s, String queue) throws Exception {
        MessageConsumer consumer = Client.consumer(s, queue);
        assertEquals("m#1", Mail.label(Mail.must(consumer)));
        s.rollback();
        consumer.close();
    }

    /** A prefix and a suffix; and what someone moves back to work is a dead letter anew when it fails there. */
    @Test
    void by_hand_to_work_and_back() throws Exception {
        String queue = Mail.unique("own");
        String dead = "DLQ." + queue + ".dead";
        poison(queue, DeliveryMode.NON_PERSISTENT);
        Mail.awaitDepth(broker.url(), dead, 1);
        String other = Mail.unique("own.other");
        HttpResponse<String> moved = HttpClient.newHttpClient().send(HttpRequest.newBuilder(
            URI.create(broker.process().admin() + "/api/v1/queues/" + dead + "/move"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"to\":\"" + other + "\",\"all\":true}")).build(),
            HttpResponse.BodyHandlers.ofString());
        assertEquals(200, moved.statusCode(), moved.body());
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            Message m = Mail.browse(s, other, null).get(0);
            assertEquals("queue://" + dead, m.getStringProperty("movedFrom"));
            fail(s, other);
        }
        Mail.awaitDepth(broker.url(), "DLQ." + other + ".dead", 1);
        Mail.awaitDepth(broker.url(), other, 0);
        Message m = Mail.browse(broker.url(), "DLQ." + other + ".dead").get(0);
        assertFalse(m.propertyExists("movedFrom"));
        assertEquals(2, m.getLongProperty("deliveryAttempts"));
        assertEquals("NON_PERSISTENT", m.getStringProperty("originalDeliveryMode"));
    }

    /** R-EDGE-39: with an expiration dead letters go when it is over, unread. */
    @Test
    void an_expiration_ends() throws Exception {
        String queue = Mail.unique("brief");
        poison(queue, DeliveryMode.PERSISTENT);
        Mail.awaitDepth(broker.url(), "DLQ." + queue, 1);
        Mail.awaitDepth(broker.url(), "DLQ." + queue, 0);
        Mail.deadLetters(broker.url(), queue, 0);
        Mail.deadLetters(broker.url(), "DLQ." + queue, 0);
    }

    /** Dead letters go to a topic: a consumer without a durable subscription has them as they come. */
    @Test
    void a_topic_is_live() throws Exception {
        String queue = Mail.unique("live");
        poison(queue, DeliveryMode.PERSISTENT); // nobody is there
        try (Client c = Client.open(broker.url())) {
            MessageConsumer watch = Client.consumer(c.auto(), "topic://DLQ." + queue);
            poison(queue, DeliveryMode.PERSISTENT);
            Message m = Mail.must(watch);
            assertEquals("topic://DLQ." + queue, m.getJMSDestination().toString());
            assertTrue(m.getStringProperty(Mail.CAUSE).contains("Delivery[1]"), m.getStringProperty(Mail.CAUSE));
            Mail.none(watch);
        }
    }

    /** R-DLS-12: a subscription may be called anything, and fail. */
    @Test
    void a_subscription_with_a_comma() throws Exception {
        String topic = Mail.unique("feed");
        String id = Mail.unique("client");
        try (Client c = Client.to(broker.url()).limit(0).clientId(id).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = s.createDurableSubscriber((Topic) Client.destination("topic://" + topic), "new, and old");
            for (String text : List.of("m0", "m1")) {
                Mail.send(broker.url(), "topic://" + topic, text);
                assertEquals(text + "#1", Mail.label(Mail.must(consumer)));
                s.rollback();
            }
        }
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), "DLQ." + topic + "." + id + ":new_ and old", 2));
    }
}

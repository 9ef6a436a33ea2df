package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.JMSSecurityException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.ResourceAllocationException;
import javax.jms.Session;
import javax.jms.Topic;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.function.Executable;

/**
 * The configuration that Artemis ships, with its files for users and roles and some queues added: what it
 * says of users, of permissions and of queues holds for OpenWire clients as they are.
 */
@Reference.Beyond("R-HQ")
class ArtemisFileTest {
    @RegisterExtension
    static final Broker broker = Broker.with("artemis/broker.xml");

    private static Client as(String user, String password) throws JMSException {
        return Client.to(broker.url()).limit(0).factory(f -> {
            f.setUserName(user);
            f.setPassword(password);
        }).open();
    }

    private static Client admin() throws JMSException {
        return as("admin", "manager");
    }

    private static void refused(Class<? extends JMSException> type, String text, Executable what) {
        JMSException e = assertThrows(type, what);
        assertTrue(e.getMessage().contains(text), e.getMessage());
    }

    private static Message red(Session s, String colour) throws JMSException {
        Message m = Mail.text(s, "red", colour);
        m.setStringProperty("colour", colour);
        return m;
    }

    /** R-HQ-136: each application has a queue of its own of a topic, and its dead letters go where the address says. */
    @Test
    void consumers_of_a_virtual_topic() throws Exception {
        try (Client c = admin()) {
            Session s = c.transacted();
            MessageConsumer billing = Client.consumer(s, "Consumer.Billing.VirtualTopic.orders");
            MessageConsumer audit = Client.consumer(s, "VirtualTopic.orders::Consumer.Audit.VirtualTopic.orders");
            MessageConsumer plain = Client.consumer(s, "topic://VirtualTopic.orders");
            Client.producer(s, "topic://VirtualTopic.orders").send(Mail.text(s, "virtual", "order"));
            s.commit();
            for (MessageConsumer k : List.of(billing, audit, plain)) {
                assertEquals("order", Mail.next(k));
            }
            s.commit();
        }
    }

    /** R-HQ-93: the time of Artemis' own property holds, and is gone when it has come. */
    @Test
    void delivered_at_its_time() throws Exception {
        try (Client c = admin()) {
            Session s = c.auto();
            MessageConsumer k = Client.consumer(s, "later");
            Message m = Mail.text(s, "later", "at its time");
            long due = System.currentTimeMillis() + 3000;
            m.setLongProperty("_AMQ_SCHED_DELIVERY", due);
            Client.producer(s, "later").send(m);
            m = Mail.text(s, "later", "at once");
            m.setLongProperty("_AMQ_SCHED_DELIVERY", due - 10_000);
            Client.producer(s, "later").send(m);
            assertEquals("at once", Mail.next(k));
            Message later = Mail.must(k);
            assertEquals("at its time", Mail.body(later));
            assertTrue(System.currentTimeMillis() >= due, "it came " + (due - System.currentTimeMillis()) + " ms early");
            assertTrue(!later.propertyExists("_AMQ_SCHED_DELIVERY"), "it could be delayed once more where it is forwarded");
        }
    }

    /** Every part that does not hold is named with its line. */
    @Test
    void what_is_left_out_is_named() throws Exception {
        String log = Files.readString(broker.process().log());
        for (String part : List.of("broker.xml:7: max-redelivery-records", "broker.xml:9: paging-directory", "broker.xml:16: journal-device-block-size",
            "broker.xml:25: critical-analyzer-policy", "broker.xml:28: metrics", "broker.xml:29: acceptors", "broker.xml:96: broker-plugin")) {
            assertTrue(log.contains(part), part);
        }
        assertTrue(!log.contains("security-setting"), "permissions are enforced");
    }

    /** R-HQ-128: passwords are hashes in artemis-users.properties. */
    @Test
    void who_comes_in() throws Exception {
        refused(JMSException.class, "User name [admin] or password is invalid.", () -> as("admin", "wrong").close());
        refused(JMSException.class, "User name [eve] or password is invalid.", () -> as("eve", "secret").close());
        refused(JMSException.class, "User name [null] or password is invalid.", () -> as(null, null).close());
        admin().close();
        as("tom", "rosebud").close();
    }

    /** R-HQ-128: the most specific security-setting counts, whole. */
    @Test
    void permissions() throws Exception {
        try (Client admin = admin(); Client sam = as("sam", "secret"); Client tom = as("tom", "rosebud")) {
            Session s = sam.auto();
            Mail.send(s, "orders", "m0");
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, "orders"))));

            String secret = Mail.unique("secret");
            Mail.send(s, secret, "m1");
            refused(JMSSecurityException.class, "User sam is not authorized to read from: queue://" + secret, () -> Client.consumer(s, secret));
            refused(JMSSecurityException.class, "User admin is not authorized to write to: queue://" + secret, () -> Client.producer(admin.auto(), secret));
            assertEquals("m1#1", Mail.label(Mail.must(Client.consumer(admin.auto(), secret))));

            String other = Mail.unique("other");
            refused(JMSSecurityException.class, "User sam is not authorized to create: queue://" + other, () -> Client.producer(s, other));
            Mail.send(admin.auto(), other, "m2");
            Session t = tom.auto();
            assertEquals(List.of("m2"), Mail.bodies(Mail.browse(t, other, null)));
            refused(JMSSecurityException.class, "User tom is not authorized to read from: queue://" + other, () -> Client.consumer(t, other));
        }
    }

    /** Subscriptions and temporary queues need permissions of their own. */
    @Test
    void subscriptions() throws Exception {
        String id = Mail.unique("client");
        try (Client admin = Client.to(broker.url()).factory(f -> {
            f.setUserName("admin");
            f.setPassword("manager");
            f.setClientID(id);
        }).open(); Client sam = Client.to(broker.url()).factory(f -> {
            f.setUserName("sam");
            f.setPassword("secret");
            f.setClientID(id + ".sam");
        }).open()) {
            Session a = admin.auto();
            Session s = sam.auto();
            Topic topic = a.createTopic(Mail.unique("topic"));
            MessageConsumer durable = a.createDurableSubscriber(topic, "s");
            MessageConsumer passing = s.createConsumer(topic);
            refused(JMSSecurityException.class, "User sam is not authorized to create a durable subscription of: " + topic, () -> s.createDurableSubscriber(topic, "s"));
            s.createProducer(topic).send(s.createTextMessage("m0"));
            assertEquals("m0", Mail.body(Mail.must(passing)));
            assertEquals("m0", Mail.body(Mail.must(durable)));
            durable.close();
            a.unsubscribe("s");

            Queue mine = s.createTemporaryQueue();
            MessageConsumer answers = s.createConsumer(mine);
            s.createProducer(mine).send(s.createTextMessage("answer"));
            assertEquals("answer", Mail.body(Mail.must(answers)));
        }
    }

    /** auto-create-queues and auto-create-addresses. */
    @Test
    void queues_that_are_not_made() throws Exception {
        try (Client c = admin()) {
            Session s = c.auto();
            Mail.send(s, "fixed.there", "m0");
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, "fixed.there"))));
            refused(InvalidDestinationException.class, "does not exist", () -> Client.consumer(s, "fixed.missing"));
            refused(InvalidDestinationException.class, "does not exist", () -> Client.producer(s, "fixed.missing"));
        }
    }

    /** max-consumers: one more is refused, until another goes. */
    @Test
    void so_many_consumers() throws Exception {
        String queue = Mail.unique("alone");
        try (Client c = admin()) {
            Session s = c.auto();
            MessageConsumer first = Client.consumer(s, queue);
            refused(ResourceAllocationException.class, "max-consumers", () -> Client.consumer(s, queue));
            first.close();
            Client.consumer(s, queue).close();
        }
    }

    /** consumers-before-dispatch, without a time. */
    @Test
    void consumers_to_wait_for() throws Exception {
        String queue = Mail.unique("crowd");
        try (Client one = admin(); Client two = admin()) {
            Mail.send(one.auto(), queue, "m0", "m1");
            MessageConsumer first = Client.consumer(one.auto(), queue);
            assertNull(first.receive(1500));
            MessageConsumer second = Client.consumer(two.auto(), queue);
            List<String> got = new ArrayList<>(List.of(Mail.body(Mail.must(first)), Mail.body(Mail.must(second))));
            got.sort(null);
            assertEquals(List.of("m0", "m1"), got);
        }
    }

    /** ring-size (R-HQ-98) and purge-on-no-consumers (R-HQ-97). */
    @Test
    void what_queues_keep() throws Exception {
        try (Client c = admin()) {
            Session s = c.auto();
            Mail.send(s, "ring", Mail.numbered(5));
            assertEquals(List.of("m2", "m3", "m4"), Mail.bodies(Mail.browse(s, "ring", null)));

            Mail.send(s, "passing", "lost");
            MessageConsumer consumer = Client.consumer(s, "passing");
            Mail.send(s, "passing", "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(s, "passing", "left");
            consumer.close();
            assertEquals(List.of(), Mail.bodies(Mail.browse(s, "passing", null)));
        }
    }

    /** last-value-key (R-HQ-96). */
    @Test
    void the_newest_of_each_value() throws Exception {
        try (Client c = admin()) {
            Session s = c.auto();
            for (String price : List.of("A 1", "B 1", "A 2", "B 2", "A 3")) {
                Message m = Mail.text(s, "prices", price);
                m.setStringProperty("symbol", price.substring(0, 1));
                s.createProducer(s.createQueue("prices")).send(m);
            }
            assertEquals(List.of("B 2", "A 3"), Mail.bodies(Mail.browse(s, "prices", null)));
        }
    }

    /** A queue's filter, and the queues of a multicast address by their full names. */
    @Test
    void filters_and_full_names() throws Exception {
        try (Client c = admin()) {
            Session s = c.auto();
            s.createProducer(s.createQueue("red")).send(red(s, "red"));
            s.createProducer(s.createQueue("red")).send(red(s, "blue"));
            MessageConsumer reds = Client.consumer(s, "red");
            assertEquals("red", Mail.body(Mail.must(reds)));
            Mail.none(reds);

            Message sports = Mail.text(s, "news", "goal");
            sports.setStringProperty("desk", "sports");
            s.createProducer(s.createTopic("news")).send(sports);
            s.createProducer(s.createTopic("news")).send(Mail.text(s, "news", "rain"));
            MessageConsumer archive = Client.consumer(s, "news::archive");
            assertEquals("goal", Mail.body(Mail.must(archive)));
            assertEquals("rain", Mail.body(Mail.must(archive)));
            MessageConsumer desk = Client.consumer(s, "news::sports");
            assertEquals("goal", Mail.body(Mail.must(desk)));
            Mail.none(desk);
            Client.producer(s, "news::archive").send(Mail.text(s, "news", "alone"));
            assertEquals("alone", Mail.body(Mail.must(archive)));
            refused(InvalidDestinationException.class, "has no queue", () -> Client.consumer(s, "news::other"));
        }
    }
}

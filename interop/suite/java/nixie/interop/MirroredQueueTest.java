package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.TreeSet;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.Topic;
import org.apache.activemq.ScheduledMessage;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** useMirroredQueues: what is sent to a queue is also sent to the topic VirtualTopic.Mirror.QUEUE. */
class MirroredQueueTest {
    @RegisterExtension static final Broker broker = Broker.with("mirrored.xml");

    private static String mirror(String queue) {
        return "VirtualTopic.Mirror." + queue;
    }

    private static MessageConsumer watch(Session s, String queue) throws JMSException {
        return Client.consumer(s, "topic://" + mirror(queue));
    }

    /** The copy's JMSDestination is the topic, and it says of no other; that of an application's queue is as from any virtual topic. */
    @Test
    void a_queue_and_its_mirror() throws Exception {
        String queue = Mail.unique("orders");
        String app = "Consumer.a." + mirror(queue);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer tap = watch(s, queue);
            MessageConsumer consumer = Client.consumer(s, app);
            MessageConsumer second = watch(s, app);
            Mail.send(broker.url(), queue, "m0");
            ActiveMQMessage copy = (ActiveMQMessage) Mail.must(tap);
            assertEquals("m0#1", Mail.label(copy));
            assertEquals(Client.destination("topic://" + mirror(queue)), copy.getJMSDestination());
            assertNull(copy.getOriginalDestination());
            ActiveMQMessage kept = (ActiveMQMessage) Mail.must(consumer);
            assertEquals(Client.destination(app), kept.getJMSDestination());
            assertEquals(Client.destination("topic://" + mirror(queue)), kept.getOriginalDestination());
            assertEquals(copy.getJMSMessageID(), kept.getJMSMessageID());
            assertEquals("m0#1", Mail.label(Mail.must(second)), "the application's queue has a mirror, too");
            Mail.none(tap);
        }
        assertEquals(List.of("m0#1"), Mail.take(broker.url(), queue, 1));
    }

    /** In a transaction the copies come with its commit; a durable subscriber has what it missed. */
    @Test
    void durable_in_a_transaction() throws Exception {
        String queue = Mail.unique("orders");
        String id = Mail.unique("tap");
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            s.createDurableSubscriber((Topic) Client.destination("topic://" + mirror(queue)), "tap").close();
        }
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, queue, "undone");
            s.rollback();
            Mail.send(s, queue, "m0", "m1");
            s.commit();
        }
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            MessageConsumer tap = s.createDurableSubscriber((Topic) Client.destination("topic://" + mirror(queue)), "tap");
            assertEquals(List.of("m0#1", "m1#1"), Mail.drain(tap, 2));
            Mail.none(tap);
            tap.close();
            s.unsubscribe("tap");
        }
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), queue, 2));
    }

    /** A delivery once more is not mirrored; what becomes a dead letter is, as of the dead letter queue. */
    @Test
    void a_dead_letter() throws Exception {
        String queue = Mail.unique("orders");
        try (Client watcher = Client.open(broker.url()); Client c = Client.to(broker.url()).limit(1).open()) {
            MessageConsumer tap = watch(watcher.auto(), queue);
            MessageConsumer graves = watch(watcher.auto(), "ActiveMQ.DLQ");
            Mail.send(broker.url(), queue, "m0");
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            assertEquals("m0#2!", Mail.label(Mail.must(consumer)));
            s.rollback();
            ActiveMQMessage dead = (ActiveMQMessage) Mail.must(graves);
            assertEquals("m0", Mail.body(dead));
            assertEquals(Client.destination("topic://" + mirror("ActiveMQ.DLQ")), dead.getJMSDestination());
            assertEquals(Client.destination(queue), dead.getOriginalDestination());
            assertEquals("m0#1", Mail.label(Mail.must(tap)));
            Mail.none(tap);
        }
        assertEquals(1, Mail.deadLetters(broker.url(), queue, 1).size());
    }

    /** A temporary queue is mirrored, too, and a scheduled message when its time has come. */
    @Test
    void temporary_and_scheduled() throws Exception {
        String queue = Mail.unique("orders");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            TemporaryQueue replies = s.createTemporaryQueue();
            MessageConsumer tap = watch(s, queue);
            MessageConsumer temps = watch(s, replies.getQueueName());
            MessageProducer p = s.createProducer((Destination) null);
            p.send(replies, Mail.text(s, queue, "reply"));
            assertEquals("reply", Mail.body(Mail.must(temps)));
            assertEquals("reply", Mail.body(Mail.must(s.createConsumer(replies))));
            Message later = Mail.text(s, queue, "later");
            later.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 300);
            p.send(Client.destination(queue), later);
            assertEquals("later", Mail.body(Mail.must(tap)));
            Mail.none(tap);
        }
        assertEquals(List.of("later#1"), Mail.take(broker.url(), queue, 1));
    }

    /** An application's queue for all topics gets what its own mirror would send back to it: once. */
    @Test
    @Reference.Beyond("the broker answers with a StackOverflowError")
    void no_circle() throws Exception {
        String queue = Mail.unique("orders");
        String all = "Consumer." + Mail.unique("all").replace('.', '-') + ".VirtualTopic.>";
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), all);
            Mail.send(broker.url(), queue, "m0", "m1");
            TreeSet<String> got = new TreeSet<>();
            for (Message m; (m = consumer.receive(got.size() < 2 ? Mail.SOON : Mail.QUIET)) != null; ) {
                if (((ActiveMQMessage) m).getOriginalDestination().equals(Client.destination("topic://" + mirror(queue)))) {
                    assertTrue(got.add(Mail.body(m)), "twice");
                }
            }
            assertEquals(List.of("m0", "m1"), List.copyOf(got));
        }
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), queue, 2));
    }
}

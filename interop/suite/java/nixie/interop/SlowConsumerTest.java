package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.IllegalStateException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.command.ConsumerInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Slow consumers: what waits for them, and when they are closed (R-BRK-40, R-BRK-41, R-DLS-01). */
class SlowConsumerTest {
    @RegisterExtension static final Broker broker = Broker.with("slow.xml");

    /** Sets what makes a message one that an eviction looks at. */
    private interface Change {
        void apply(TextMessage m, MessageProducer p, int i) throws JMSException;
    }

    private static void send(Client c, String topic, int n, Change change) throws JMSException {
        Session s = c.auto();
        MessageProducer p = Client.producer(s, topic);
        p.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int i = 0; i < n; i++) {
            TextMessage m = Mail.text(s, topic, "m" + i);
            change.apply(m, p, i);
            p.send(m);
        }
    }

    /** What was sent without an answer is there. */
    private static void settle(Client c) throws JMSException {
        c.auto().createTemporaryQueue(); // is answered, behind it
    }

    /** All that a consumer gets when it begins to take, each acknowledged. */
    private static List<String> all(MessageConsumer c, int n) throws JMSException {
        List<String> out = new ArrayList<>();
        for (Message m = c.receive(n > 0 ? Mail.SOON : Mail.QUIET); m != null; m = c.receive(out.size() < n ? Mail.SOON : Mail.QUIET)) {
            out.add(Mail.body(m));
            m.acknowledge();
        }
        return out;
    }

    @ParameterizedTest
    @CsvSource({
        "limited,'','m0,m1,m8,m9,m10,m11'",
        "limited,?consumer.maximumPendingMessageLimit=2,'m0,m1,m10,m11'",
        "limited,?consumer.maximumPendingMessageLimit=9,'m0,m1,m8,m9,m10,m11'",
        "rate,'','m0,m1,m9,m10,m11'",
        "free,?consumer.maximumPendingMessageLimit=2,'m0,m1,m2,m3,m4,m5,m6,m7,m8,m9,m10,m11'"})
    void the_oldest_go(String stem, String options, String want) throws Exception {
        String topic = "topic://" + Mail.unique(stem);
        List<String> wanted = List.of(want.split(","));
        try (Client c = Client.to(broker.url()).prefetch(2).open(); Client sender = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), topic + options);
            send(sender, topic, 12, (m, p, i) -> { });
            settle(sender);
            assertEquals(wanted, all(consumer, wanted.size()));
        }
    }

    @Test
    void the_lowest_priority_goes() throws Exception {
        String topic = "topic://" + Mail.unique("lowest");
        int[] priority = {4, 4, 5, 1, 9, 0, 5, 1, 7};
        try (Client c = Client.to(broker.url()).prefetch(2).open(); Client sender = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), topic);
            send(sender, topic, priority.length, (m, p, i) -> p.setPriority(priority[i]));
            settle(sender);
            assertEquals(List.of("m0", "m1", "m4", "m6", "m8"), all(consumer, 5));
        }
    }

    @Test
    void what_is_superseded_goes() throws Exception {
        String topic = "topic://" + Mail.unique("newest");
        try (Client c = Client.to(broker.url()).prefetch(2).open(); Client sender = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), topic);
            send(sender, topic, 12, (m, p, i) -> {
                m.setStringProperty("stock", "s" + i % 3);
                try {
                    Thread.sleep(2); // ActiveMQ tells the newest by its time stamp
                } catch (InterruptedException e) {
                    throw new JMSException(e.toString());
                }
            });
            settle(sender);
            assertEquals(List.of("m0", "m1", "m8", "m9", "m10", "m11"), all(consumer, 6));
        }
    }

    /** A persistent message is a dead letter, each is told of, and a durable subscription loses nothing. */
    @Test
    void what_goes_is_told() throws Exception {
        ActiveMQDestination topic = Client.destination("topic://" + Mail.unique("limited"));
        String id = Mail.unique("client");
        try (Watcher discarded = new Watcher(broker.url(), AdvisorySupport.getMessageDiscardedAdvisoryTopic(topic));
             Watcher slow = new Watcher(broker.url(), AdvisorySupport.getSlowConsumerAdvisoryTopic(topic));
             Client c = Client.to(broker.url()).prefetch(2).open();
             Client durable = Client.to(broker.url()).clientId(id).prefetch(2).open()) {
            Session s = durable.auto();
            MessageConsumer kept = s.createDurableSubscriber((javax.jms.Topic) topic, "kept");
            MessageConsumer consumer = c.session(Session.CLIENT_ACKNOWLEDGE).createConsumer(topic);
            Mail.send(broker.url(), topic.getQualifiedName(), Mail.numbered(9));
            for (int i = 0; i < 3; i++) {
                ActiveMQMessage told = discarded.next();
                assertEquals(i + 1, told.getIntProperty(AdvisorySupport.MSG_PROPERTY_DISCARDED_COUNT));
                assertTrue(told.getStringProperty(AdvisorySupport.MSG_PROPERTY_CONSUMER_ID).startsWith(c.connection.getConnectionInfo().getConnectionId().getValue()));
                assertEquals(topic.getQualifiedName(), told.getStringProperty(AdvisorySupport.MSG_PROPERTY_DESTINATION));
                assertNull(((ActiveMQTextMessage) told.getDataStructure()).getText());
            }
            assertInstanceOf(ConsumerInfo.class, slow.next().getDataStructure());
            assertEquals(List.of("m0", "m1", "m5", "m6", "m7", "m8"), all(consumer, 6));
            assertEquals(9, Mail.drain(kept, 9).size());
            List<Message> dead = Mail.deadLetters(broker.url(), topic.getQualifiedName(), 3);
            assertEquals(List.of("m2", "m3", "m4"), Mail.bodies(dead));
            for (Message m : dead) {
                String cause = m.getStringProperty(Mail.CAUSE);
                assertTrue(cause.contains(Reference.or("Subscription discard. ID:", "TopicSubDiscard. ID:")), cause);
            }
        }
    }

    /** It is closed as if its application had; the session and the connection go on. */
    @Test
    void a_slow_subscriber_is_closed() throws Exception {
        ActiveMQDestination topic = Client.destination("topic://" + Mail.unique("slow"));
        try (Watcher slow = new Watcher(broker.url(), AdvisorySupport.getSlowConsumerAdvisoryTopic(topic));
             Client c = Client.to(broker.url()).prefetch(2).open()) {
            BlockingQueue<JMSException> failures = new LinkedBlockingQueue<>();
            c.connection.setExceptionListener(failures::add);
            Session s = c.auto();
            MessageConsumer consumer = s.createConsumer(topic);
            Mail.send(broker.url(), topic.getQualifiedName(), Mail.numbered(8));
            slow.next();
            assertTrue(closes(consumer), "it is still open");
            Thread.sleep(1500); // the broker has removed it
            assertNull(failures.poll());
            MessageConsumer again = s.createConsumer(topic);
            Mail.send(broker.url(), topic.getQualifiedName(), "then");
            assertEquals("then#1", Mail.label(Mail.must(again)));
        }
    }

    /** Whether a consumer is closed soon, without its application's doing. */
    private static boolean closes(MessageConsumer c) throws Exception {
        for (long end = System.currentTimeMillis() + Mail.SOON; System.currentTimeMillis() < end; Thread.sleep(50)) {
            try {
                c.getMessageSelector();
            } catch (IllegalStateException e) {
                return true;
            }
        }
        return false;
    }

    /**
     * A listener that hangs: its consumer is removed, and its messages go to another, which is told that they may
     * have been seen. The client acknowledges what its listener is at when it is asked to close.
     */
    @Test
    void a_hanging_listener_loses_its_messages() throws Exception {
        String queue = Mail.unique("hangs");
        CountDownLatch free = new CountDownLatch(1);
        try (Client c = Client.to(broker.url()).prefetch(3).open()) {
            BlockingQueue<JMSException> failures = new LinkedBlockingQueue<>();
            c.connection.setExceptionListener(failures::add);
            MessageConsumer hangs = Client.consumer(c.auto(), queue);
            CountDownLatch began = new CountDownLatch(1);
            hangs.setMessageListener(m -> {
                began.countDown();
                try {
                    free.await(Mail.SOON, TimeUnit.MILLISECONDS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            Mail.send(broker.url(), queue, Mail.numbered(3));
            assertTrue(began.await(Mail.SOON, TimeUnit.MILLISECONDS));
            try (Client other = Client.open(broker.url())) {
                assertEquals(List.of("m1#2!", "m2#2!"), Mail.drain(Client.consumer(other.auto(), queue), 2));
            }
            free.countDown();
            assertTrue(closes(hangs), "it is still open");
            if (!Reference.active()) { // which says that a consumer which it has removed was not there
                Thread.sleep(500);
                assertNull(failures.poll());
            }
        } finally {
            free.countDown();
        }
    }

    /** A blocked receive ends with null, and the next one says that the consumer is closed. */
    @Test
    void who_acknowledges_nothing_is_closed() throws Exception {
        String queue = Mail.unique("hangs.unacknowledged");
        try (Client c = Client.to(broker.url()).prefetch(10).open()) {
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), queue);
            Mail.send(broker.url(), queue, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            long begin = System.currentTimeMillis();
            assertNull(consumer.receive(Mail.SOON));
            assertTrue(System.currentTimeMillis() - begin < Mail.SOON - 1000, "it waited for its time");
            assertThrows(IllegalStateException.class, () -> consumer.receive(1));
        }
        assertEquals(List.of("m0#2!"), Mail.take(broker.url(), queue, 1));
    }

    @Test
    void a_connection_is_ended() throws Exception {
        String queue = Mail.unique("cut");
        BlockingQueue<JMSException> failures = new LinkedBlockingQueue<>();
        Client c = Client.to(broker.url()).prefetch(10).open();
        try {
            c.connection.setExceptionListener(failures::add);
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), queue);
            Mail.send(broker.url(), queue, "m0");
            Mail.must(consumer);
            assertFalse(failures.poll(Mail.SOON, TimeUnit.MILLISECONDS) == null, "its exception listener heard nothing");
            for (int i = 0; i < 100 && !c.connection.isTransportFailed(); i++) {
                Thread.sleep(50);
            }
            assertTrue(c.connection.isTransportFailed());
        } finally {
            Client.abandon(c.connection);
        }
        assertEquals(List.of("m0#2!"), Mail.take(broker.url(), queue, 1));
    }

    @Test
    void a_retained_message() throws Exception {
        String topic = "topic://" + Mail.unique("kept");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, topic);
            for (int i = 0; i < 4; i++) {
                TextMessage m = Mail.text(s, topic, "m" + i);
                if (i < 2) {
                    m.setBooleanProperty("ActiveMQ.Retain", true);
                }
                p.send(m);
            }
            MessageConsumer late = Client.consumer(s, topic + "?consumer.retroactive=true");
            Message first = Mail.must(late);
            assertEquals("m1#1", Mail.label(first));
            assertTrue(first.getBooleanProperty("ActiveMQ.Retained"));
            assertFalse(first.getBooleanProperty("ActiveMQ.Retain"));
            assertEquals(List.of("m2#1", "m3#1"), Mail.drain(late, 2));
            MessageConsumer plain = Client.consumer(s, topic);
            Mail.none(plain);
        }
    }

    /** One without a body takes it away. ActiveMQ 5.17 fails when it is sent one. */
    @Test
    @Reference.Beyond("a retained message can be taken away")
    void no_retained_message_any_more() throws Exception {
        String topic = "topic://" + Mail.unique("kept");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, topic);
            TextMessage m = Mail.text(s, topic, "gone");
            m.setBooleanProperty("ActiveMQ.Retain", true);
            p.send(m);
            Message end = s.createMessage();
            end.setBooleanProperty("ActiveMQ.Retain", true);
            p.send(end);
            Mail.send(s, topic, "m0", "m1");
            assertEquals(List.of("m0#1", "m1#1"), Mail.drain(Client.consumer(s, topic + "?consumer.retroactive=true"), 2));
        }
    }
}

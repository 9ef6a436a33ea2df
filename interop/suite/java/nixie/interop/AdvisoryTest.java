package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.advisory.ConsumerEvent;
import org.apache.activemq.advisory.ConsumerEventSource;
import org.apache.activemq.advisory.ProducerEvent;
import org.apache.activemq.advisory.ProducerEventSource;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.command.ConnectionInfo;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.DestinationInfo;
import org.apache.activemq.command.ProducerInfo;
import org.apache.activemq.command.RemoveInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Advisory topics other than those of temporary destinations, by the names that the client has for them. */
class AdvisoryTest {
    @RegisterExtension static final Broker broker = Broker.with("advisories.xml");

    @Test
    void connections() throws Exception {
        try (Watcher w = new Watcher(broker.url(), AdvisorySupport.getConnectionAdvisoryTopic())) {
            String id;
            try (Client c = Client.to(broker.url()).clientId(Mail.unique("joiner")).open()) {
                ActiveMQMessage joined = w.about(c.connection.getClientID());
                ConnectionInfo info = assertInstanceOf(ConnectionInfo.class, joined.getDataStructure());
                id = info.getConnectionId().getValue();
                assertEquals("Advisory", joined.getJMSType());
                assertNotNull(joined.getStringProperty(AdvisorySupport.MSG_PROPERTY_ORIGIN_BROKER_NAME));
            }
            assertInstanceOf(RemoveInfo.class, w.about(id).getDataStructure());
        }
    }

    @Test
    void queues() throws Exception {
        String name = Mail.unique("created");
        try (Watcher w = new Watcher(broker.url(), AdvisorySupport.QUEUE_ADVISORY_TOPIC); Client c = Client.open(broker.url())) {
            Mail.send(broker.url(), name, "m0");
            DestinationInfo added = (DestinationInfo) w.about(name).getDataStructure();
            assertEquals(name, added.getDestination().getPhysicalName());
            Mail.take(broker.url(), name, 1);
            c.connection.destroyDestination(Client.destination(name));
            assertEquals(DestinationInfo.REMOVE_OPERATION_TYPE, ((DestinationInfo) w.about(name).getDataStructure()).getOperationType());
        }
    }

    /** The client's own listeners, which it builds on advisories. */
    @Test
    void event_sources() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("sources"));
        try (Client watcher = Client.open(broker.url()); Client c = Client.open(broker.url())) {
            BlockingQueue<ConsumerEvent> consumers = new LinkedBlockingQueue<>();
            BlockingQueue<ProducerEvent> producers = new LinkedBlockingQueue<>();
            ConsumerEventSource cs = new ConsumerEventSource(watcher.connection, queue);
            cs.setConsumerListener(consumers::add);
            cs.start();
            ProducerEventSource ps = new ProducerEventSource(watcher.connection, queue);
            ps.setProducerListener(producers::add);
            ps.start();
            Session s = c.auto();
            MessageConsumer consumer = s.createConsumer(queue);
            ConsumerEvent started = consumers.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(started, "no event of the consumer");
            assertEquals(1, started.getConsumerCount());
            assertEquals(true, started.isStarted());
            MessageProducer producer = s.createProducer(queue);
            ProducerEvent opened = producers.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(opened, "no event of the producer");
            assertEquals(1, opened.getProducerCount());
            producer.close();
            ProducerEvent closed = producers.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(closed, "no event of the producer's end");
            assertEquals(0, closed.getProducerCount());
            consumer.close();
            ConsumerEvent stopped = consumers.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(stopped, "no event of the consumer's end");
            assertEquals(0, stopped.getConsumerCount());
            assertEquals(false, stopped.isStarted());
            cs.stop();
            ps.stop();
        }
    }

    @Test
    void producers_are_described() throws Exception {
        ActiveMQDestination topic = Client.destination("topic://" + Mail.unique("described"));
        try (Watcher w = new Watcher(broker.url(), AdvisorySupport.getProducerAdvisoryTopic(topic)); Client c = Client.open(broker.url())) {
            c.auto().createProducer(topic);
            assertEquals(topic, ((ProducerInfo) w.next().getDataStructure()).getDestination());
        }
    }

    /** R-BRK-25, R-DLQ-30, R-DLQ-31: always told, without the body. */
    @Test
    void expired_and_dead() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("mortal"));
        try (Watcher expired = new Watcher(broker.url(), AdvisorySupport.getExpiredMessageTopic(queue));
             Watcher dead = new Watcher(broker.url(), AdvisorySupport.getMessageDLQdAdvisoryTopic(queue));
             Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = s.createConsumer(queue);
            TextMessage m = s.createTextMessage("poison");
            s.createProducer(queue).send(m);
            s.commit();
            assertEquals("poison", Mail.next(consumer));
            s.rollback();
            ActiveMQMessage told = dead.next();
            ActiveMQTextMessage subject = assertInstanceOf(ActiveMQTextMessage.class, told.getDataStructure());
            assertEquals(m.getJMSMessageID(), subject.getJMSMessageID());
            assertNull(subject.getText());
            consumer.close();
            s.commit();

            MessageProducer p = s.createProducer(queue);
            p.setTimeToLive(50);
            TextMessage brief = s.createTextMessage("brief");
            p.send(brief);
            s.commit();
            Thread.sleep(200);
            s.createConsumer(queue); // ActiveMQ looks at a message's time when someone wants it
            ActiveMQMessage gone = expired.next();
            assertEquals(brief.getJMSMessageID(), gone.getStringProperty(AdvisorySupport.MSG_PROPERTY_MESSAGE_ID));
        }
    }

    @Test
    void what_the_policy_asks_for() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("told.about"));
        try (Watcher delivered = new Watcher(broker.url(), AdvisorySupport.getMessageDeliveredAdvisoryTopic(queue));
             Watcher consumed = new Watcher(broker.url(), AdvisorySupport.getMessageConsumedAdvisoryTopic(queue));
             Watcher slow = new Watcher(broker.url(), AdvisorySupport.getSlowConsumerAdvisoryTopic(queue));
             Client c = Client.to(broker.url()).prefetch(2).open()) {
            Session s = c.auto();
            MessageConsumer consumer = s.createConsumer(queue);
            Mail.send(s, queue.getPhysicalName(), Mail.numbered(5));
            for (int i = 0; i < 5; i++) {
                ActiveMQTextMessage subject = (ActiveMQTextMessage) delivered.next().getDataStructure();
                assertNull(subject.getText());
            }
            if (!Reference.active()) { // it finds a consumer of a queue slow much later
                assertInstanceOf(ConsumerInfo.class, slow.next().getDataStructure());
            }
            Message m = Mail.must(consumer);
            ActiveMQMessage told = consumed.next();
            assertEquals(m.getJMSMessageID(), told.getStringProperty(AdvisorySupport.MSG_PROPERTY_MESSAGE_ID));
        }
    }

    @Test
    void with_the_body() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("whole.body"));
        try (Watcher consumed = new Watcher(broker.url(), AdvisorySupport.getMessageConsumedAdvisoryTopic(queue))) {
            Mail.send(broker.url(), queue.getPhysicalName(), "kept");
            Mail.take(broker.url(), queue.getPhysicalName(), 1);
            assertEquals("kept", ((ActiveMQTextMessage) consumed.next().getDataStructure()).getText());
        }
    }

    /** R-DLQ-33: nobody consumes it, and the message itself is told; a queue keeps it all the same. */
    @ParameterizedTest
    @ValueSource(strings = {"topic", "queue"})
    void no_consumer(String kind) throws Exception {
        ActiveMQDestination to = Client.destination(kind + "://" + Mail.unique("told.nobody"));
        try (Watcher w = new Watcher(broker.url(), AdvisorySupport.getNoConsumersAdvisoryTopic(to)); Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = s.createProducer(to);
            p.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            p.send(s.createTextMessage("anyone?"));
            assertEquals("anyone?", Mail.body(w.next()));
            if (to.isQueue()) {
                assertEquals("anyone?#1", Mail.label(Mail.must(s.createConsumer(to))));
            }
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ConsumerInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Temporary destinations, request and reply, and the advisories that the client depends on. */
class TemporaryDestinationTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @Test
    void request_and_reply() throws Exception {
        String queue = Mail.unique("requests");
        try (Client server = Client.open(broker.url()); Client client = Client.open(broker.url())) {
            Session ss = server.auto();
            MessageProducer replies = ss.createProducer(null);
            Client.consumer(ss, queue).setMessageListener(m -> {
                try {
                    Message reply = ss.createTextMessage("re: " + Mail.body(m));
                    reply.setJMSCorrelationID(m.getJMSMessageID());
                    replies.send(m.getJMSReplyTo(), reply);
                } catch (JMSException e) {
                    throw new IllegalStateException(e);
                }
            });
            Session s = client.auto();
            for (Destination back : new Destination[] {s.createTemporaryQueue(), s.createTemporaryTopic()}) {
                MessageConsumer answers = s.createConsumer(back);
                for (int i = 0; i < 20; i++) {
                    Message m = s.createTextMessage("q" + i);
                    m.setJMSReplyTo(back);
                    Client.producer(s, queue).send(m);
                    Message answer = Mail.must(answers);
                    assertEquals("re: q" + i, Mail.body(answer));
                    assertEquals(m.getJMSMessageID(), answer.getJMSCorrelationID());
                }
                answers.close();
            }
        }
    }

    /** Only its own connection may consume from a temporary destination. */
    @Test
    void no_stranger_consumes() throws Exception {
        try (Client owner = Client.open(broker.url()); Client stranger = Client.open(broker.url())) {
            TemporaryQueue q = owner.auto().createTemporaryQueue();
            assertThrows(JMSException.class, () -> stranger.auto().createConsumer(q));
        }
    }

    /** It ends with its connection, and senders learn of it by the advisory. */
    @Test
    void gone_with_its_connection() throws Exception {
        try (Client sender = Client.open(broker.url())) {
            Session s = sender.auto();
            TemporaryQueue q;
            try (Client owner = Client.open(broker.url())) {
                q = owner.auto().createTemporaryQueue();
                sender.roundTrip(); // it has been told
                s.createProducer(q).send(s.createTextMessage("there"));
            }
            assertSoonGone(s, q);
        }
    }

    @Test
    void deleted() throws Exception {
        try (Client owner = Client.open(broker.url()); Client sender = Client.open(broker.url())) {
            Session s = sender.auto();
            Session os = owner.auto();
            TemporaryTopic t = os.createTemporaryTopic();
            MessageConsumer consumer = os.createConsumer(t);
            sender.roundTrip(); // it has been told
            s.createProducer(t).send(s.createTextMessage("there"));
            assertEquals("there", Mail.next(consumer));
            assertThrows(JMSException.class, t::delete, "still in use");
            consumer.close();
            t.delete();
            assertSoonGone(s, t);
        }
    }

    /**
     * The requester's connection is lost while its request is worked on, and the reply is there before it is back: it
     * gets the reply all the same, and who sends it is told of no error.
     */
    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    @Reference.Beyond("ActiveMQ deletes the queue with the lost connection, and refuses the reply")
    void reply_while_the_requester_fails_over(int mode) throws Exception {
        String queue = Mail.unique("requests");
        String id = Mail.unique("client");
        try (Client server = Client.open(broker.url()); CuttingProxy proxy = new CuttingProxy(broker.port());
                Client client = Client.to("failover:(" + proxy.url() + ")?initialReconnectDelay=50&useExponentialBackOff=false").clientId(id).open()) {
            Session s = client.auto();
            TemporaryQueue back = s.createTemporaryQueue();
            MessageConsumer answers = s.createConsumer(back);
            Session ss = server.auto();
            MessageConsumer requests = Client.consumer(ss, queue);
            for (int i = 0; i < 3; i++) {
                TextMessage m = s.createTextMessage("q" + i);
                m.setJMSReplyTo(back);
                Client.producer(s, queue).send(m);
                Message request = Mail.must(requests);
                proxy.stall(); // who comes is not served
                proxy.cut();
                Client.awaitGone(broker.url(), id);
                MessageProducer replies = ss.createProducer(request.getJMSReplyTo());
                replies.setDeliveryMode(mode);
                replies.send(ss.createTextMessage("re: q" + i));
                replies.close();
                Thread.sleep(300);
                proxy.resume();
                assertEquals("re: q" + i + "#1", Mail.label(Mail.must(answers)));
            }
            Mail.none(answers);
        }
    }

    /** The broker is killed and started; who answers is back before who asked. */
    @Test
    @Reference.Beyond("ActiveMQ refuses the reply")
    void reply_before_the_requester_is_back() throws Exception {
        try (BrokerProcess own = Broker.own("reply-early")) {
            String queue = Mail.unique("requests");
            String quick = "?initialReconnectDelay=50&useExponentialBackOff=false";
            try (CuttingProxy proxy = new CuttingProxy(URI.create(own.url()).getPort());
                    Client client = Client.open("failover:(" + proxy.url() + ")" + quick);
                    Client server = Client.open("failover:(" + own.url() + ")" + quick)) {
                Session s = client.auto();
                TemporaryQueue back = s.createTemporaryQueue();
                MessageConsumer answers = s.createConsumer(back);
                TextMessage m = s.createTextMessage("q");
                m.setJMSReplyTo(back);
                Client.producer(s, queue).send(m);
                Session ss = server.transacted();
                MessageConsumer requests = Client.consumer(ss, queue);
                proxy.stall();
                own.kill();
                proxy.cut();
                own.start();
                Message request = Mail.must(requests);
                ss.createProducer(request.getJMSReplyTo()).send(ss.createTextMessage("re: q"));
                ss.commit();
                proxy.resume();
                assertEquals("re: q#1", Mail.label(Mail.must(answers)));
            }
            Mail.awaitDepth(own.url(), queue, 0);
        }
    }

    /** The client forgets the destination when the advisory comes, which is asynchronous. */
    private static void assertSoonGone(Session s, Destination d) throws Exception {
        MessageProducer p = s.createProducer(null);
        for (long end = System.nanoTime() + Mail.SOON * 1_000_000; System.nanoTime() < end; Thread.sleep(50)) {
            try {
                p.send(d, s.createTextMessage("late"));
            } catch (InvalidDestinationException e) {
                return;
            }
        }
        throw new AssertionError("one can still send to " + d);
    }

    /** R-MAP-01, redelivery on a temporary queue goes like on any other. */
    @Test
    void rollback_on_a_temporary_queue() throws Exception {
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            TemporaryQueue q = s.createTemporaryQueue();
            MessageConsumer consumer = s.createConsumer(q);
            try (Client other = Client.open(broker.url())) {
                Session os = other.auto();
                os.createProducer(q).send(os.createTextMessage("m0"));
            }
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            assertEquals("m0#2!", Mail.label(Mail.must(consumer)));
            s.commit();
            Mail.none(consumer);
        }
    }

    /** Consumer advisories carry the ConsumerInfo and the number of consumers; so does a late subscriber's replay. */
    @Test
    void consumer_advisories() throws Exception {
        ActiveMQDestination queue = Client.destination(Mail.unique("watched"));
        try (Client watcher = Client.open(broker.url()); Client c = Client.open(broker.url())) {
            BlockingQueue<ActiveMQMessage> seen = new LinkedBlockingQueue<>();
            watcher.auto().createConsumer(AdvisorySupport.getConsumerAdvisoryTopic(queue))
                .setMessageListener(m -> seen.add((ActiveMQMessage) m));
            Session s = c.auto();
            MessageConsumer consumer = s.createConsumer(queue);
            ActiveMQMessage started = seen.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(started, "no advisory");
            assertEquals(queue, ((ConsumerInfo) started.getDataStructure()).getDestination());
            assertEquals(1, started.getIntProperty("consumerCount"));
            BlockingQueue<ActiveMQMessage> late = new LinkedBlockingQueue<>();
            watcher.auto().createConsumer(AdvisorySupport.getConsumerAdvisoryTopic(queue))
                .setMessageListener(m -> late.add((ActiveMQMessage) m));
            assertNotNull(late.poll(Mail.SOON, TimeUnit.MILLISECONDS), "no replay for a late watcher");
            consumer.close();
            ActiveMQMessage stopped = seen.poll(Mail.SOON, TimeUnit.MILLISECONDS);
            assertNotNull(stopped, "no advisory of the close");
            assertEquals(0, stopped.getIntProperty("consumerCount"));
        }
    }

    /** The connection's own list of destinations is fed by advisories. */
    @Test
    void destination_source() throws Exception {
        String name = Mail.unique("listed");
        Mail.send(broker.url(), name, "m0");
        try (Client c = Client.open(broker.url())) {
            var source = c.connection.getDestinationSource();
            boolean found = false;
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000; !found && System.nanoTime() < end; Thread.sleep(50)) {
                found = source.getQueues().stream().anyMatch(q -> q.getPhysicalName().equals(name));
            }
            assertTrue(found, "not listed: " + source.getQueues());
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The simplified API of JMS 2.0, as far as the 6.x client has it. */
class SimplifiedApiTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static JMSContext context(int mode) {
        return new ActiveMQConnectionFactory(broker.url()).createContext(mode);
    }

    @Test
    void send_and_receive() {
        try (JMSContext c = context(JMSContext.AUTO_ACKNOWLEDGE)) {
            Queue queue = c.createQueue(Mail.unique("simple"));
            JMSProducer p = c.createProducer().setPriority(7).setJMSCorrelationID("c").setProperty("p", 5);
            p.send(queue, "text");
            JMSConsumer k = c.createConsumer(queue);
            Message m = k.receive(Mail.SOON);
            assertNull(k.receiveNoWait());
            assertEquals("text", text(m));
            assertEquals(7, priority(m));
        }
    }

    private static int priority(Message m) {
        try {
            assertEquals("c", m.getJMSCorrelationID());
            assertEquals(5, m.getIntProperty("p"));
            return m.getJMSPriority();
        } catch (jakarta.jms.JMSException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String text(Message m) {
        try {
            return m == null ? null : m.getBody(String.class);
        } catch (jakarta.jms.JMSException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void transacted() {
        try (JMSContext c = context(JMSContext.SESSION_TRANSACTED)) {
            Queue queue = c.createQueue(Mail.unique("simple"));
            c.createProducer().send(queue, "kept");
            c.commit();
            c.createProducer().send(queue, "dropped");
            c.rollback();
            JMSConsumer k = c.createConsumer(queue);
            assertEquals("kept", text(k.receive(Mail.SOON)));
            c.rollback();
            assertEquals("kept", text(k.receive(Mail.SOON)));
            c.commit();
            assertNull(k.receive(Mail.QUIET));
        }
    }

    @Test
    void durable() {
        String id = Mail.unique("client");
        String name = Mail.unique("news");
        try (JMSContext c = context(JMSContext.AUTO_ACKNOWLEDGE)) {
            c.setClientID(id);
            Topic topic = c.createTopic(name);
            c.createDurableConsumer(topic, "sub").close();
            c.createProducer().send(topic, "while away");
            assertEquals("while away", text(c.createDurableConsumer(topic, "sub").receive(Mail.SOON)));
        }
    }

    /** What the client refuses by itself; should a later one have it, the broker is to be looked at. */
    @Test
    void what_the_client_lacks() {
        try (JMSContext c = context(JMSContext.AUTO_ACKNOWLEDGE)) {
            Topic topic = c.createTopic(Mail.unique("shared"));
            assertThrows(UnsupportedOperationException.class, () -> c.createSharedConsumer(topic, "s"));
            assertThrows(UnsupportedOperationException.class, () -> c.createSharedDurableConsumer(topic, "s"));
            assertThrows(UnsupportedOperationException.class, () -> c.createProducer().setDeliveryDelay(1));
            assertThrows(UnsupportedOperationException.class, () -> c.createConsumer(topic).receiveBody(String.class, 1));
        }
    }
}

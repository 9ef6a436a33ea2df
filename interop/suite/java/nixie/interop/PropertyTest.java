package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Properties that the broker or the client adds to messages. */
class PropertyTest {
    @RegisterExtension static final Broker broker = Broker.with("named.xml");

    private static Client as(String user, String password) throws JMSException {
        return Client.to(broker.url()).factory(f -> {
            f.setUserName(user);
            f.setPassword(password);
        }).open();
    }

    /** populateJMSXUserID: who sent it, whatever the sender says; and in the dead letter too. */
    @Test
    void user_id() throws Exception {
        String queue = Mail.unique("users");
        try (Client sam = as("sam", "secret"); Client kim = as("kim", "hidden")) {
            Session s = sam.auto();
            ActiveMQMessage m = (ActiveMQMessage) Mail.text(s, queue, "m0");
            m.setUserID("someone else");
            Client.producer(s, queue).send(m);
            Session t = kim.transacted();
            MessageConsumer consumer = Client.consumer(t, queue);
            Message got = Mail.must(consumer);
            assertEquals("sam", got.getStringProperty("JMSXUserID"));
            Client.producer(t, queue + ".on").send(got);
            t.commit();
            MessageConsumer last = Client.consumer(s, queue + ".on");
            assertEquals("kim", Mail.must(last).getStringProperty("JMSXUserID"), "who passed it on");
            last.close();
            MessageConsumer selecting = s.createConsumer(Client.destination(queue + ".on"), "JMSXUserID = 'kim'");
            Mail.send(t, queue + ".on", "m1");
            t.commit();
            assertEquals("m1", Mail.next(selecting));
        }
    }

    /** When the broker got a message, and when it gave it to the consumer. */
    @Test
    void broker_times() throws Exception {
        String queue = Mail.unique("times");
        try (Client c = as("sam", "secret")) {
            Session s = c.auto();
            Message sent = Mail.text(s, queue, "m0");
            long before = System.currentTimeMillis();
            Client.producer(s, queue).send(sent);
            long between = System.currentTimeMillis();
            Thread.sleep(50);
            ActiveMQMessage m = (ActiveMQMessage) Mail.must(Client.consumer(s, queue));
            long after = System.currentTimeMillis();
            long in = m.getLongProperty("JMSActiveMQBrokerInTime");
            long out = m.getLongProperty("JMSActiveMQBrokerOutTime");
            assertEquals(in, m.getBrokerInTime());
            assertEquals(out, m.getBrokerOutTime());
            assertTrue(before <= in && in <= between, "in " + in + " of " + before + " to " + between);
            assertTrue(between + 50 <= out + 1 && out <= after, "out " + out + " of " + between + " to " + after);
        }
    }

    /** JMSXProducerTXID is the transaction that sent it; what was sent without one has none. */
    @Test
    void producer_transaction() throws Exception {
        String queue = Mail.unique("txid");
        try (Client c = as("sam", "secret"); Client reader = as("kim", "hidden")) {
            Mail.send(c.auto(), queue, "m0");
            Session s = c.transacted();
            Mail.send(s, queue, "m1", "m2");
            s.commit();
            Mail.send(s, queue, "m3");
            s.commit();
            MessageConsumer consumer = Client.consumer(reader.auto(), queue);
            assertNull(Mail.must(consumer).getStringProperty("JMSXProducerTXID"));
            String first = Mail.must(consumer).getStringProperty("JMSXProducerTXID");
            assertNotNull(first);
            assertEquals(first, Mail.must(consumer).getStringProperty("JMSXProducerTXID"));
            String second = Mail.must(consumer).getStringProperty("JMSXProducerTXID");
            assertNotNull(second);
            assertTrue(!second.equals(first), second);
        }
    }

    /** JMSXDeliveryCount is 1 at first, and counts deliveries that failed, in the client and over consumers. */
    @Test
    void delivery_count() throws Exception {
        String queue = Mail.unique("count");
        try (Client c = as("sam", "secret")) {
            Mail.send(c.auto(), queue, "m0");
            for (int round = 0; round < 2; round++) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queue);
                int begin = round * Reference.or(2, 1); // R-EDGE-14: ActiveMQ does not count what the client redelivers by itself
                for (int i = 1; i <= 2; i++) {
                    Message m = Mail.must(consumer);
                    assertEquals(begin + i, m.getIntProperty("JMSXDeliveryCount"));
                    assertEquals(round + i > 1, m.getJMSRedelivered());
                    if (i == 1) {
                        s.rollback();
                    }
                }
                s.close();
            }
        }
    }

    /** The group's properties come as they were sent, and with what the broker adds of the consumer. */
    @Test
    void group() throws Exception {
        String queue = Mail.unique("group");
        try (Client c = as("sam", "secret")) {
            Session s = c.auto();
            for (int i = 1; i <= 2; i++) {
                Message m = Mail.text(s, queue, "m" + i);
                m.setStringProperty("JMSXGroupID", "g");
                m.setIntProperty("JMSXGroupSeq", i);
                Client.producer(s, queue).send(m);
            }
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i <= 2; i++) {
                Message m = Mail.must(consumer);
                assertEquals("g", m.getStringProperty("JMSXGroupID"));
                assertEquals(i, m.getIntProperty("JMSXGroupSeq"));
                assertEquals(i == 1, m.getBooleanProperty("JMSXGroupFirstForConsumer"));
            }
        }
    }

    /** ?producer. options of a destination, which the client applies to its producer. */
    @Test
    void producer_options() throws Exception {
        String queue = Mail.unique("window");
        try (Client c = Client.to(broker.url()).factory(f -> {
            f.setUserName("sam");
            f.setPassword("secret");
            f.setUseAsyncSend(true);
        }).open()) {
            Session s = c.auto();
            var p = s.createProducer(Client.destination(queue + "?producer.windowSize=2000&producer.dispatchAsync=false"));
            p.setDeliveryMode(DeliveryMode.PERSISTENT);
            String[] texts = Mail.numbered(50);
            for (String text : texts) {
                p.send(Mail.text(s, queue, text + "-".repeat(500))); // waits for the broker when 2,000 bytes are on their way
            }
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String text : texts) {
                assertEquals(text + "-".repeat(500), Mail.next(consumer));
            }
            assertEquals(List.of(), Mail.drain(consumer, 0));
        }
    }
}

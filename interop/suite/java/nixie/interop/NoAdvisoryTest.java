package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A broker with advisorySupport="false". */
class NoAdvisoryTest {
    @RegisterExtension static final Broker broker = Broker.with("no-advisories.xml");

    @Test
    void nobody_is_told() throws Exception {
        try (Client c = Client.open(broker.url())) {
            MessageConsumer told = c.auto().createConsumer(Client.destination("topic://ActiveMQ.Advisory.Queue,topic://ActiveMQ.Advisory.Connection,topic://ActiveMQ.Advisory.Consumer.>"));
            String queue = Mail.unique("untold");
            Mail.send(broker.url(), queue, "m0");
            assertEquals(1, Mail.take(broker.url(), queue, 1).size());
            assertNull(told.receive(Mail.QUIET));
        }
    }

    /** A Java client answers to another's temporary destination only if it was told of it. */
    @Test
    @Reference.Beyond("with ActiveMQ the client refuses to send: Cannot publish to a deleted Destination")
    void replies_find_their_way() throws Exception {
        try (Client asks = Client.open(broker.url()); Client answers = Client.open(broker.url())) {
            Session s = asks.auto();
            TemporaryQueue reply = s.createTemporaryQueue();
            MessageConsumer consumer = s.createConsumer(reply);
            answers.roundTrip(); // it has been told
            Session other = answers.auto();
            other.createProducer(reply).send(other.createTextMessage("answer"));
            assertEquals("answer#1", Mail.label(Mail.must(consumer)));
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.Topic;
import org.apache.activemq.command.ActiveMQMessage;

/** Someone who subscribes to an advisory topic. */
final class Watcher implements AutoCloseable {
    private final Client client;
    private final BlockingQueue<ActiveMQMessage> seen = new LinkedBlockingQueue<>();

    Watcher(String url, Topic topic) throws Exception {
        client = Client.open(url);
        client.auto().createConsumer(topic).setMessageListener(m -> seen.add((ActiveMQMessage) m));
    }

    ActiveMQMessage next() throws Exception {
        ActiveMQMessage m = seen.poll(Mail.SOON, TimeUnit.MILLISECONDS);
        assertNotNull(m, "no advisory");
        return m;
    }

    /** Sees that nothing more is told. */
    void none() throws Exception {
        ActiveMQMessage m = seen.poll(Mail.QUIET, TimeUnit.MILLISECONDS);
        assertNull(m, () -> "an advisory to " + m.getDestination());
    }

    /** Passes over what other tests brought about. */
    ActiveMQMessage about(String text) throws Exception {
        ActiveMQMessage m = next();
        while (!String.valueOf(m.getDataStructure()).contains(text)) {
            m = next();
        }
        return m;
    }

    @Override
    public void close() throws Exception {
        client.close();
    }
}

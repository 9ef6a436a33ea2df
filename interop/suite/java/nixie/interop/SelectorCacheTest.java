package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;

/** virtualSelectorCacheBrokerPlugin: queues of selector aware virtual topics get what consumers select that are away. */
class SelectorCacheTest {
    private static void publish(String url, String topic, int from, int to) throws JMSException {
        try (Client c = Client.open(url)) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, "topic://" + topic);
            for (int i = from; i < to; i++) {
                Message m = Mail.text(s, topic, "m" + i);
                m.setIntProperty("n", i);
                m.setStringProperty("region", "r" + i);
                p.send(m);
            }
        }
    }

    private static void come(String url, String queue, String selector) throws JMSException {
        try (Client c = Client.open(url)) {
            c.auto().createConsumer(Client.destination(queue), selector).close();
        }
    }

    @Test
    void consumers_that_are_away() throws Exception {
        try (BrokerProcess own = new BrokerProcess("SelectorCacheTest", Broker.resource("selectorcache.xml")).start()) {
            String topic = "VirtualTopic." + Mail.unique("news");
            String two = "Consumer.two." + topic;
            String wild = "Consumer.wild." + topic;
            String every = "Consumer.every." + topic;
            come(own.url(), two, "n = 1");
            come(own.url(), two, "n > 3");
            come(own.url(), wild, "region LIKE 'r%'"); // ignoreWildcardSelectors
            come(own.url(), every, "n = 4");
            come(own.url(), every, null);
            publish(own.url(), topic, 0, 5);
            own.restart();
            publish(own.url(), topic, 5, 6);
            assertEquals(List.of("m1#1", "m4#1", "m5#1"), Mail.take(own.url(), two, 3));
            assertEquals(6, Mail.take(own.url(), every, 6).size());
            assertEquals(List.of(), Mail.take(own.url(), wild, 0));
        }
    }

    /** Who only looks into a queue wants nothing sent there. */
    @Test
    void browsers() throws Exception {
        try (BrokerProcess own = new BrokerProcess("SelectorCacheTest", Broker.resource("selectorcache.xml")).start()) {
            String topic = "VirtualTopic." + Mail.unique("news");
            String queue = "Consumer.one." + topic;
            come(own.url(), queue, "n = 1");
            Mail.browse(own.url(), queue);
            publish(own.url(), topic, 0, 3);
            assertEquals(List.of("m1#1"), Mail.take(own.url(), queue, 1));
        }
    }
}

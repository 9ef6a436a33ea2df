package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Queue browsers: everything is seen, in order, and stays. */
class BrowserTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** R-EDGE-50 (better): more than a page. */
    @Test
    @Reference.Beyond("R-EDGE-50: stops at a page when memory is short")
    void more_than_a_thousand() throws Exception {
        String queue = Mail.unique("deep");
        fill(queue, 1500);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            assertEquals(Arrays.asList(Mail.numbered(1500)), Mail.bodies(Mail.browse(s, queue, null)));
            List<Message> some = Mail.browse(s, queue, "hundredth = 7 AND n > 1000");
            assertEquals(List.of("m1007", "m1107", "m1207", "m1307", "m1407"), Mail.bodies(some));
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 1500; i++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(consumer)));
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    private static void fill(String queue, int n) throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < n; i++) {
                Message m = Mail.text(s, queue, "m" + i);
                m.setIntProperty("n", i);
                m.setIntProperty("hundredth", i % 100);
                p.send(m);
            }
            s.commit();
        }
    }

    @Test
    void empty_queue() throws Exception {
        assertEquals(List.of(), Mail.browse(broker.url(), Mail.unique("empty")));
    }

    @Test
    void with_a_selector() throws Exception {
        String queue = Mail.unique("selected");
        fill(queue, 300);
        try (Client c = Client.open(broker.url())) {
            assertEquals(List.of("m7", "m107", "m207"), Mail.bodies(Mail.browse(c.auto(), queue, "hundredth = 7")));
        }
    }

    /** What a consumer holds is seen too (R-JMX-21 by hand); what it acknowledged is not. */
    @Test
    void sees_what_is_in_flight() throws Exception {
        String queue = Mail.unique("flight");
        fill(queue, 3);
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.must(consumer);
            s.commit();
            Mail.must(consumer);
            assertEquals(List.of("m1", "m2"), Mail.bodies(Mail.browse(broker.url(), queue)));
            s.commit();
        }
    }

    /** Browsed half and given up: the next browse starts at the front. */
    @Test
    void given_up_half_way() throws Exception {
        String queue = Mail.unique("half");
        fill(queue, 50);
        try (Client c = Client.to(broker.url()).prefetch(5).open()) {
            Session s = c.auto();
            QueueBrowser b = s.createBrowser(new ActiveMQQueue(queue));
            Enumeration<?> e = b.getEnumeration();
            for (int i = 0; i < 10; i++) {
                assertTrue(e.hasMoreElements());
                assertEquals("m" + i, Mail.body((Message) e.nextElement()));
            }
            b.close();
            assertEquals(50, Mail.browse(s, queue, null).size());
        }
        assertEquals(50, Mail.take(broker.url(), queue, 50).size());
    }

    /** Browsed messages keep their headers, unread and unflagged. */
    @Test
    void headers() throws Exception {
        String queue = Mail.unique("headers");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message sent = Mail.text(s, queue, "m0");
            Client.producer(s, queue).send(sent, DeliveryMode.NON_PERSISTENT, 9, 60_000);
            Message seen = Mail.browse(s, queue, null).get(0);
            assertEquals(sent.getJMSMessageID(), seen.getJMSMessageID());
            assertEquals(9, seen.getJMSPriority());
            assertEquals(DeliveryMode.NON_PERSISTENT, seen.getJMSDeliveryMode());
            assertEquals(sent.getJMSExpiration(), seen.getJMSExpiration());
            assertFalse(seen.getJMSRedelivered());
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, queue))));
        }
    }

    /** Several queues by a pattern or a list, with a small window too. */
    @ParameterizedTest
    @ValueSource(ints = {1, 500})
    void several_queues(int prefetch) throws Exception {
        String stem = Mail.unique("several");
        Mail.send(broker.url(), stem + ".A", "a0", "a1");
        Mail.send(broker.url(), stem + ".B", "b0", "b1");
        try (Client c = Client.to(broker.url()).factory(f -> f.getPrefetchPolicy().setQueueBrowserPrefetch(prefetch)).open()) {
            for (String name : List.of(stem + ".*", stem + ".B," + stem + ".A")) {
                List<String> got = Mail.bodies(Mail.browse(c.auto(), name, null));
                Collections.sort(got);
                assertEquals(List.of("a0", "a1", "b0", "b1"), got, name);
            }
        }
        assertEquals(List.of("a0#1", "a1#1"), Mail.take(broker.url(), stem + ".A", 2));
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** policyEntry prioritizedMessages (R-PRI-01) and persistJMSRedelivered (R-CNT-30), from an activemq.xml. */
class PriorityTest {
    @RegisterExtension static final Broker broker = Broker.with("prioritized.xml");

    /** Sends one message for each priority given, named after it and its place. */
    private static void send(String queue, int... priorities) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < priorities.length; i++) {
                p.send(Mail.text(s, queue, "p" + priorities[i] + "." + i), DeliveryMode.PERSISTENT, priorities[i], 0);
            }
        }
    }

    /** Highest first, and by arrival within one priority. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000})
    void highest_first(int prefetch) throws Exception {
        String queue = Mail.unique("PRIO");
        send(queue, 4, 0, 9, 4, 5, 9, 1, 4);
        List<String> got = new ArrayList<>();
        try (Client c = Client.to(broker.url()).prefetch(prefetch).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            for (int i = 0; i < 8; i++) {
                got.add(Mail.next(consumer));
            }
        }
        assertEquals(List.of("p9.2", "p9.5", "p5.4", "p4.0", "p4.3", "p4.7", "p1.6", "p0.1"), got);
    }

    /** Without the policy arrival alone decides. */
    @Test
    void not_prioritized_by_default() throws Exception {
        String queue = Mail.unique("PLAIN");
        send(queue, 4, 0, 9);
        assertEquals(List.of("p4.0#1", "p0.1#1", "p9.2#1"), Mail.take(broker.url(), queue, 3));
    }

    /** R-CNT-09: what was given back goes first within its priority only. */
    @Test
    void given_back_within_its_priority() throws Exception {
        String queue = Mail.unique("PRIO");
        send(queue, 4, 4);
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            assertEquals("p4.0", Mail.next(Client.consumer(s, queue)));
        }
        send(queue, 9);
        List<String> got = Mail.take(broker.url(), queue, 3);
        assertEquals(List.of("p9.0#1", "p4.0#2!", "p4.1#1"), got);
    }

    /** R-PRI-01: a client that sorts what it has (messagePrioritySupported) puts what it rolled back behind what is more urgent. */
    @Test
    void sorted_by_the_client() throws Exception {
        String queue = Mail.unique("PRIO");
        send(queue, 1, 1);
        try (Client c = Client.to(broker.url()).factory(f -> f.setMessagePrioritySupported(true)).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("p1.0", Mail.next(consumer));
            send(queue, 9);
            Client.awaitBuffered(consumer, 2); // it is in the client, with p1.1, which came before
            s.rollback();
            List<String> got = Mail.drain(consumer, 3);
            s.commit();
            assertEquals(List.of("p9.0#1", "p1.0#2!", "p1.1#1"), got);
        }
        assertEquals(List.of(), Mail.take(broker.url(), queue, 0));
    }

    /** Priority survives a restart, and the dead letter keeps it. */
    @Test
    void over_a_restart() throws Exception {
        String queue = Mail.unique("PRIO");
        send(queue, 1, 8, 3);
        broker.process().restart();
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("p8.1", Mail.next(consumer));
            s.rollback();
            assertEquals("p3.2", Mail.next(consumer));
            assertEquals("p1.0", Mail.next(consumer));
            s.commit();
        }
        assertEquals(8, Mail.deadLetters(broker.url(), queue, 1).get(0).getJMSPriority());
    }

    /** R-CNT-30, 33: with persistJMSRedelivered what a kill interrupted is flagged; a delivery is counted once. */
    @Test
    void persist_redelivered() throws Exception {
        String queue = Mail.unique("FLAGGED");
        Mail.send(broker.url(), queue, "m0");
        Client c = Client.open(broker.url());
        Mail.must(Client.consumer(c.transacted(), queue));
        broker.process().kill();
        Client.abandon(c.connection);
        broker.process().start();
        try (Client d = Client.open(broker.url())) {
            Message m = Mail.must(Client.consumer(d.auto(), queue));
            assertTrue(m.getJMSRedelivered());
            assertEquals(2, Mail.count(m));
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** C13: a failing reader of the dead letter queue loses nothing. C20: browsing changes nothing. */
class DeadLetterQueueTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @BeforeEach
    void emptyDeadLetterQueue() throws JMSException {
        int left = Mail.browse(broker.url(), Mail.DLQ).size();
        if (left > 0) {
            Mail.take(broker.url(), Mail.DLQ, left);
        }
    }

    private static void poison(String queue, String... texts) throws JMSException {
        Mail.send(broker.url(), queue, texts);
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String text : texts) {
                assertEquals(text, Mail.next(consumer));
            }
            s.rollback();
        }
    }

    /** R-EDGE-04: it stays, the reader is slowed down, and another reader finds it untouched. */
    @Test
    @Reference.Beyond("R-EDGE-04, R-DLQ-05: 5.17.2 loses it")
    void C13_a_failing_reader_loses_nothing() throws Exception {
        String queue = Mail.unique("C13");
        poison(queue, "m0", "m1");
        Mail.awaitDepth(broker.url(), Mail.DLQ, 2);
        for (int repeat = 0; repeat < 2; repeat++) {
            try (Client c = Client.to(broker.url()).limit(1).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, Mail.DLQ);
                int deliveries = 0;
                long end = System.nanoTime() + 4_000_000_000L;
                for (Message m = Mail.must(consumer); m != null && (deliveries < 2 || System.nanoTime() < end); m = consumer.receive(deliveries < 2 ? Mail.SOON : 1000)) {
                    deliveries++;
                    s.rollback();
                }
                // The client's own redeliveries are immediate: two a round for each message, and the rounds grow apart.
                assertTrue(deliveries >= 2 && deliveries <= 30, deliveries + " deliveries");
            }
            Mail.awaitDepth(broker.url(), Mail.DLQ, 2);
            assertEquals(0, Mail.browse(broker.url(), "DLQ." + Mail.DLQ).size());
            assertEquals(0, Mail.browse(broker.url(), "ActiveMQ.DLQ.Queue." + Mail.DLQ).size());
        }
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, Mail.DLQ);
            for (String want : List.of("m0#1", "m1#1")) {
                Message m = Mail.must(consumer);
                assertEquals(want, Mail.label(m));
                assertEquals(queue, m.getStringProperty("origin"));
                assertTrue(m.getStringProperty(Mail.CAUSE).contains("Delivery[1]"), m.getStringProperty(Mail.CAUSE));
                assertEquals(0L, m.getObjectProperty("originalExpiration"));
            }
            s.commit();
        }
        Mail.awaitDepth(broker.url(), Mail.DLQ, 0);
    }

    /** C13 where each queue has its dead letter queue, by a pattern that fits that one, too: it has none of its own. */
    @Test
    @Reference.Beyond("R-EDGE-04, R-EDGE-28: 5.17.2 loses it")
    void C13_a_failing_reader_of_an_individual_queue() throws Exception {
        try (BrokerProcess own = Broker.own("individual", Broker.resource("individual.xml"), "")) {
            Mail.send(own.url(), "Q", "m0");
            for (String from : List.of("Q", "DLQ.Q", "DLQ.Q")) {
                try (Client c = Client.to(own.url()).limit(1).open()) {
                    Session s = c.transacted();
                    MessageConsumer consumer = Client.consumer(s, from);
                    Mail.must(consumer);
                    s.rollback();
                    for (Message m = Mail.must(consumer); m != null; m = consumer.receive(500)) {
                        s.rollback();
                    }
                }
                Mail.awaitDepth(own.url(), "DLQ.Q", 1);
                assertFalse(new Operator(own).look("destinations").contains("DLQ.DLQ"));
            }
            assertEquals(List.of("m0#1"), Mail.take(own.url(), "DLQ.Q", 1));
        }
    }

    /** C13: while one reader is held off, another gets the message at once. */
    @Test
    @Reference.Beyond("R-EDGE-04")
    void C13_another_reader_is_not_held_off() throws Exception {
        String queue = Mail.unique("C13.other");
        poison(queue, "m0");
        try (Client bad = Client.to(broker.url()).limit(0).open(); Client good = Client.open(broker.url())) {
            Session s = bad.transacted();
            MessageConsumer consumer = Client.consumer(s, Mail.DLQ);
            Mail.must(consumer);
            s.rollback();
            long start = System.nanoTime();
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(good.auto(), Mail.DLQ))));
            assertTrue(System.nanoTime() - start < 5_000_000_000L);
        }
    }

    /** C20: the transacted browser with a limit of its own sees what the other one sees, and leaves no trace. */
    @Test
    @Reference.Beyond("C20: 5.17.2 hides one from the transacted browser")
    void C20_browsing_changes_nothing() throws Exception {
        String queue = Mail.unique("C20");
        poison(queue, "m0", "m1");
        for (int i = 0; i < 4; i++) {
            try (Client c = Client.to(broker.url()).limit(10).open()) {
                MessageConsumer consumer = Client.consumer(c.transacted(), Mail.DLQ);
                assertEquals("m0", Mail.next(consumer));
                assertEquals("m1", Mail.next(consumer));
            }
        }
        for (int i = 0; i < 10; i++) {
            try (Client c = Client.to(broker.url()).limit(2).open()) {
                assertEquals(List.of("m0", "m1"), Mail.bodies(Mail.browse(c.auto(), Mail.DLQ, null)), "auto");
                assertEquals(List.of("m0", "m1"), Mail.bodies(Mail.browse(c.transacted(), Mail.DLQ, null)), "transacted");
            }
        }
        assertEquals(List.of("m0#5!", "m1#5!"), Mail.take(broker.url(), Mail.DLQ, 2));
    }
}

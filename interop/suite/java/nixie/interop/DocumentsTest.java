package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Callable;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The XML of the two documents that the project was made from, as it stands there, with the real client. */
class DocumentsTest {
    @RegisterExtension
    static Broker broker = Broker.with("documents.xml");

    /** How late a redelivery may be: a busy machine's doing; ActiveMQ's own steps of half a second, too. */
    private static final long LATE = 1500;

    /** One consumer that gives a message up at once, and what it saw: the gaps between the deliveries. */
    private static List<Long> gaps(String queue) throws Exception {
        Mail.send(broker.url(), queue, "m0");
        List<Long> gaps = new ArrayList<>();
        try (Client c = Client.to(broker.url()).limit(0).prefetch(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            long failed = 0;
            for (int n = 1; n <= 5; n++) {
                Message m = consumer.receive(20_000);
                assertNotNull(m, "delivery " + n + " of " + queue);
                assertEquals("m0", Mail.body(m));
                assertEquals(n, Mail.count(m));
                assertEquals(n > 1, m.getJMSRedelivered());
                if (n > 1) {
                    gaps.add((System.nanoTime() - failed) / 1_000_000);
                }
                s.rollback();
                failed = System.nanoTime();
            }
        }
        return gaps;
    }

    private static CompletableFuture<List<Long>> async(Callable<List<Long>> what) {
        CompletableFuture<List<Long>> done = new CompletableFuture<>();
        new Thread(() -> {
            try {
                done.complete(what.call());
            } catch (Throwable t) {
                done.completeExceptionally(t);
            }
        }).start();
        return done;
    }

    private static void check(List<Long> gaps, long... want) {
        assertEquals(want.length, gaps.size(), gaps.toString());
        for (int i = 0; i < want.length; i++) {
            long early = want[i] - 30; // the client's clock starts when rollback returns
            String message = gaps + ", want " + want[i] + " at " + i;
            assertTrue(gaps.get(i) >= early, message);
            Pace.inTime(gaps.get(i) <= want[i] + LATE, message);
        }
    }

    /** E6 for SpecialQueue, whose initialRedeliveryDelay is not set there, and E5 for all others. */
    @Test
    @Timeout(240)
    void delays_and_the_dead_letters_queue() throws Exception {
        Pace.keeps(DocumentsTest::delays);
    }

    private static void delays() throws Exception {
        String other = Mail.unique("other");
        CompletableFuture<List<Long>> special = async(() -> gaps("SpecialQueue"));
        List<Long> gaps = gaps(other);
        List<Long> ofSpecial = special.get();
        for (String queue : List.of("SpecialQueue", other)) {
            if (!Reference.active()) { // R-EDGE-28, R-EDGE-31: who reads dead letters and fails loses none
                try (Client c = Client.to(broker.url()).limit(0).open()) {
                    Session s = c.transacted();
                    Mail.must(Client.consumer(s, "DLQ." + queue));
                    s.rollback();
                }
            }
            try (Client c = Client.open(broker.url())) {
                ActiveMQMessage dead = (ActiveMQMessage) Mail.must(Client.consumer(c.auto(), "DLQ." + queue));
                assertEquals("m0", Mail.body(dead));
                assertEquals(Client.destination(queue), dead.getOriginalDestination());
                assertTrue(dead.getStringProperty(Mail.CAUSE).contains("exceeds redelivery policy limit"), dead.getStringProperty(Mail.CAUSE));
            }
        }
        check(gaps, 5000, 10_000, 10_000, 10_000);
        check(ofSpecial, 1000, 10_000, 10_000, 10_000);
    }

    /** processExpired="false" and processNonPersistent="false". */
    @Test
    void what_makes_no_dead_letter() throws Exception {
        String queue = Mail.unique("nothing");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            p.send(Mail.text(s, queue, "late"), DeliveryMode.PERSISTENT, 4, 50);
            p.send(Mail.text(s, queue, "late, not persistent"), DeliveryMode.NON_PERSISTENT, 4, 50);
        }
        Thread.sleep(300);
        assertEquals(List.of(), Mail.take(broker.url(), queue, 0));
        assertEquals(List.of(), Mail.take(broker.url(), "DLQ." + queue, 0));
        assertEquals(List.of(), Mail.take(broker.url(), Mail.DLQ, 0));
    }
}

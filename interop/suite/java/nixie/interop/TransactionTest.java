package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.List;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Local transactions over several destinations: all or nothing, in order. */
class TransactionTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @Test
    void sends_appear_at_commit() throws Exception {
        String a = Mail.unique("a");
        String b = Mail.unique("b");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, a, "a0", "a1");
            Mail.send(s, b, "b0");
            Mail.send(s, a, "a2");
            assertEquals(0, Mail.browse(broker.url(), a).size());
            assertEquals(0, Mail.browse(broker.url(), b).size());
            s.commit();
        }
        assertEquals(List.of("a0#1", "a1#1", "a2#1"), Mail.take(broker.url(), a, 3));
        assertEquals(List.of("b0#1"), Mail.take(broker.url(), b, 1));
    }

    @Test
    void sends_vanish_at_rollback() throws Exception {
        String a = Mail.unique("a");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, a, "gone");
            s.rollback();
            Mail.send(s, a, "kept");
            s.commit();
            Mail.send(s, a, "closed");
        }
        assertEquals(List.of("kept#1"), Mail.take(broker.url(), a, 1));
    }

    /** Five queues in, five out, rolled back once and then committed. */
    @Test
    void moves_between_queues() throws Exception {
        String[] in = new String[5];
        String[] out = new String[5];
        for (int i = 0; i < 5; i++) {
            in[i] = Mail.unique("in");
            out[i] = Mail.unique("out");
            Mail.send(broker.url(), in[i], "m" + i);
        }
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer[] consumers = new MessageConsumer[5];
            for (int i = 0; i < 5; i++) {
                consumers[i] = Client.consumer(s, in[i]);
            }
            for (int round = 1; round <= 2; round++) {
                for (int i = 0; i < 5; i++) {
                    Message m = Mail.must(consumers[i]);
                    assertEquals("m" + i + "#" + round + (round > 1 ? "!" : ""), Mail.label(m));
                    Mail.send(s, out[i], Mail.body(m));
                }
                if (round == 1) {
                    s.rollback();
                }
            }
            s.commit();
        }
        for (int i = 0; i < 5; i++) {
            Mail.awaitDepth(broker.url(), in[i], 0);
            assertEquals(List.of("m" + i + "#1"), Mail.take(broker.url(), out[i], 1));
        }
    }

    /** Two sessions of one connection have transactions of their own. */
    @Test
    void sessions_are_apart() throws Exception {
        String a = Mail.unique("a");
        String b = Mail.unique("b");
        Mail.send(broker.url(), a, "a0");
        Mail.send(broker.url(), b, "b0");
        try (Client c = Client.open(broker.url())) {
            Session one = c.transacted();
            Session two = c.transacted();
            MessageConsumer first = Client.consumer(one, a);
            MessageConsumer second = Client.consumer(two, b);
            assertEquals("a0#1", Mail.label(Mail.must(first)));
            assertEquals("b0#1", Mail.label(Mail.must(second)));
            one.rollback();
            two.commit();
            assertEquals("a0#2!", Mail.label(Mail.must(first)));
            Mail.none(second);
            one.commit();
        }
        Mail.awaitDepth(broker.url(), a, 0);
        Mail.awaitDepth(broker.url(), b, 0);
    }

    /** R-CNT-10: a consumer that closes in an open transaction: commit still takes its messages. */
    @Test
    void consumer_closed_before_commit() throws Exception {
        String queue = Mail.unique("closed-consumer");
        Mail.send(broker.url(), queue, "m0", "m1");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0", Mail.next(consumer));
            consumer.close();
            s.commit();
        }
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), queue, 1));
    }

    /** A large transaction: 1,000 messages of 1 KiB at once. */
    @Test
    void a_large_transaction() throws Exception {
        String queue = Mail.unique("large");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            String[] texts = Mail.numbered(1000);
            for (int i = 0; i < texts.length; i++) {
                texts[i] += "-".repeat(1024);
            }
            Mail.send(s, queue, texts);
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String text : texts) {
                assertEquals(text, Mail.next(consumer));
            }
            s.commit();
            Mail.none(consumer);
        }
    }

    /** A topic and a queue in one transaction. */
    @Test
    void topic_and_queue() throws Exception {
        String topic = Mail.unique("topic");
        String queue = Mail.unique("queue");
        try (Client sub = Client.open(broker.url()); Client c = Client.open(broker.url())) {
            MessageConsumer subscriber = Client.consumer(sub.auto(), "topic://" + topic);
            Session s = c.transacted();
            Mail.send(s, "topic://" + topic, "rolled back");
            s.rollback();
            Mail.send(s, "topic://" + topic, "t0");
            Mail.send(s, queue, "q0");
            Mail.none(subscriber);
            s.commit();
            assertEquals("t0", Mail.next(subscriber));
        }
        assertEquals(List.of("q0#1"), Mail.take(broker.url(), queue, 1));
    }

    /** Rolled back reads with a delay are invisible to others until the consumer goes (R-CLIENT-47). */
    @Test
    void waiting_for_redelivery_is_in_flight() throws Exception {
        String queue = Mail.unique("waiting");
        Mail.send(broker.url(), queue, "m0");
        try (Client other = Client.open(broker.url())) {
            MessageConsumer second;
            try (Client c = Client.to(broker.url()).policy(p -> p.setInitialRedeliveryDelay(60_000)).open()) {
                Session s = c.transacted();
                Mail.must(Client.consumer(s, queue));
                s.rollback();
                second = Client.consumer(other.auto(), queue);
                Mail.none(second);
            }
            Message m = second.receive(Mail.SOON);
            assertNotNull(m);
            assertEquals("m0#2!", Mail.label(m));
        }
    }
}

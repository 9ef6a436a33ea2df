package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** C09: order through rollback, batch rollback and dead-lettering. C10: a failed consume-and-forward. */
class OrderTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @Test
    void C09_1_one_message_rolled_back() throws Exception {
        String queue = Mail.unique("C09.1");
        Mail.send(broker.url(), queue, Mail.numbered(6));
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String want : List.of("m0#1", "m1#1", "m2#1", "m2#2!", "m3#1", "m4#1", "m5#1")) {
                assertEquals(want, Mail.label(Mail.must(consumer)));
                if (want.equals("m2#1")) {
                    s.rollback();
                } else {
                    s.commit();
                }
            }
            Mail.none(consumer);
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    @Test
    void C09_2_a_batch_rolled_back() throws Exception {
        String queue = Mail.unique("C09.2");
        Mail.send(broker.url(), queue, Mail.numbered(6));
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 4; i++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(consumer)));
            }
            s.rollback();
            assertEquals(List.of("m0#2!", "m1#2!", "m2#2!", "m3#2!", "m4#1", "m5#1"), Mail.drain(consumer, 6));
            s.commit();
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    @Test
    void C09_3_dead_letters_one_by_one() throws Exception {
        String queue = Mail.unique("C09.3");
        Mail.send(broker.url(), queue, Mail.numbered(100));
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 200; i++) {
                assertEquals("m" + i / 2 + (i % 2 == 0 ? "#1" : "#2!"), Mail.label(Mail.must(consumer)));
                s.rollback();
            }
            Mail.none(consumer);
        }
        assertEquals(Arrays.asList(Mail.numbered(100)), Mail.bodies(Mail.deadLetters(broker.url(), queue, 100)));
    }

    @Test
    void C09_4_dead_letters_in_one_batch() throws Exception {
        String queue = Mail.unique("C09.4");
        Mail.send(broker.url(), queue, Mail.numbered(100));
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 100; i++) {
                Mail.must(consumer);
            }
            s.rollback();
            Mail.none(consumer);
        }
        assertEquals(Arrays.asList(Mail.numbered(100)), Mail.bodies(Mail.deadLetters(broker.url(), queue, 100)));
    }

    @Test
    void C09_5_cut_connection() throws Exception {
        String queue = Mail.unique("C09.5");
        Mail.send(broker.url(), queue, Mail.numbered(8));
        String id = Mail.unique("client");
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client c = Client.to(proxy.url()).clientId(id).prefetch(5).open();
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), queue);
            for (int i = 0; i < 5; i++) {
                assertEquals("m" + i, Mail.next(consumer));
            }
            proxy.cut();
            Client.abandon(c.connection);
        }
        Client.awaitGone(broker.url(), id); // who comes before gets what had not been handed out first
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            for (int i = 0; i < 8; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                // DELIVERED acks at half the window let more out than the prefetch: m5 to m7 may have been sent.
                assertTrue(i >= 5 || m.getJMSRedelivered(), "m" + i + " flagged redelivered");
            }
            Mail.none(consumer);
        }
    }

    /** R-EXC-03: exclusive consumers that follow each other, each with its window, have the queue's order. */
    @Test
    void exclusive_consumers_one_after_another() throws Exception {
        String queue = Mail.unique("order.exclusive");
        Mail.send(broker.url(), queue, Mail.numbered(12));
        String exclusive = queue + "?consumer.exclusive=true&consumer.prefetchSize=";
        List<String> got = new ArrayList<>();
        try (Client a = Client.open(broker.url()); Client b = Client.open(broker.url()); Client c = Client.open(broker.url())) {
            Session first = a.transacted();
            MessageConsumer one = Client.consumer(first, exclusive + 6);
            Session second = b.transacted();
            MessageConsumer two = Client.consumer(second, exclusive + 3);
            MessageConsumer three = Client.consumer(c.auto(), exclusive + 9);
            got.add(Mail.next(one));
            first.commit();
            a.close();
            got.add(Mail.next(two));
            second.commit();
            assertEquals("m2", Mail.next(two));
            second.rollback();
            b.close();
            for (int i = 2; i < 12; i++) {
                got.add(Mail.next(three));
            }
            assertEquals(List.of(Mail.numbered(12)), got);
        }
    }

    /** R-CNT-09: what a closed consumer gives back goes ahead of the others, in its old order. */
    @Test
    void given_back_ahead_of_the_others() throws Exception {
        String queue = Mail.unique("ahead");
        Mail.send(broker.url(), queue, Mail.numbered(10));
        try (Client c = Client.to(broker.url()).prefetch(4).open()) {
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), queue);
            Mail.must(consumer);
        }
        assertEquals(List.of("m0#2!", "m1#1", "m2#1", "m3#1", "m4#1", "m5#1", "m6#1", "m7#1", "m8#1", "m9#1"),
            Mail.take(broker.url(), queue, 10));
    }

    @Test
    void C10_consume_and_forward() throws Exception {
        String in = Mail.unique("IN");
        String out = Mail.unique("OUT");
        Mail.send(broker.url(), in, "m0");
        String id = Mail.browse(broker.url(), in).get(0).getJMSMessageID();
        for (int round = 1; round <= 5; round++) {
            try (Client c = Client.to(broker.url()).limit(2).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, in);
                Message m = consumer.receive(round <= 3 ? Mail.SOON : Mail.QUIET);
                assertEquals(round <= 3 ? "m0#" + round + (round > 1 ? "!" : "") : "none", Mail.label(m));
                if (m != null) {
                    Client.producer(s, out).send(m);
                }
                assertEquals(0, Mail.browse(broker.url(), out).size(), "seen before commit");
                if (round > 3) {
                    Mail.givenUp(broker.url(), in, consumer);
                }
            }
            assertEquals(0, Mail.browse(broker.url(), out).size(), "left after a close");
        }
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), in, 1).get(0);
        assertEquals(Client.destination(in), dead.getOriginalDestination());
        assertEquals(id, dead.getJMSMessageID());

        Mail.send(broker.url(), in, "m1");
        try (Client c = Client.to(broker.url()).limit(2).open()) {
            Session s = c.transacted();
            Message m = Mail.must(Client.consumer(s, in));
            MessageProducer p = Client.producer(s, out);
            p.send(m);
            s.commit();
            Message forwarded = Mail.must(Client.consumer(s, out));
            assertEquals("m1#1", Mail.label(forwarded));
            assertFalse(forwarded.getJMSRedelivered());
            s.commit();
        }
        Mail.awaitDepth(broker.url(), in, 0);
        Mail.awaitDepth(broker.url(), out, 0);
    }
}

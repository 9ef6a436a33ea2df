package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every acknowledgement mode, prefetch and pull (spec sections 3.2, 3.5 and 4.4). */
class AckModeTest {
    private static final int INDIVIDUAL = 4;

    @RegisterExtension static final Broker broker = Broker.plain();

    /** R-BRK-01 to 03: more messages than any window, in every mode and prefetch, each once and in order. */
    @ParameterizedTest
    @CsvSource({"0,0", "0,1", "0,10", "0,1000", "1,0", "1,1", "1,10", "1,1000", "2,0", "2,1", "2,10", "2,1000",
        "3,0", "3,1", "3,10", "3,1000", "4,0", "4,1", "4,10", "4,1000"})
    void every_mode_and_prefetch(int mode, int prefetch) throws Exception {
        String queue = Mail.unique("mode");
        Mail.send(broker.url(), queue, Mail.numbered(60));
        try (Client c = Client.to(broker.url()).prefetch(prefetch).open()) {
            Session s = c.session(mode);
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 60; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i + "#1", Mail.label(m));
                if (mode == INDIVIDUAL || mode == Session.CLIENT_ACKNOWLEDGE && i % 20 == 19) {
                    m.acknowledge();
                } else if (mode == Session.SESSION_TRANSACTED && i % 20 == 19) {
                    s.commit();
                }
            }
            assertNull(consumer.receiveNoWait());
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-BRK-03: one transaction, or one CLIENT_ACK batch, much larger than the prefetch does not stall. */
    @ParameterizedTest
    @ValueSource(ints = {Session.SESSION_TRANSACTED, Session.CLIENT_ACKNOWLEDGE, INDIVIDUAL})
    void a_batch_larger_than_the_window(int mode) throws Exception {
        String queue = Mail.unique("large");
        Mail.send(broker.url(), queue, Mail.numbered(100));
        try (Client c = Client.to(broker.url()).prefetch(10).open()) {
            Session s = c.session(mode);
            MessageConsumer consumer = Client.consumer(s, queue);
            Message m = null;
            List<Message> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                all.add(m);
            }
            if (mode == Session.SESSION_TRANSACTED) {
                s.commit();
            } else if (mode == INDIVIDUAL) {
                for (Message each : all) {
                    each.acknowledge();
                }
            } else {
                m.acknowledge();
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-CLIENT-12: single acknowledgements out of order; the rest comes back. */
    @Test
    void individual_out_of_order() throws Exception {
        String queue = Mail.unique("individual");
        Mail.send(broker.url(), queue, Mail.numbered(5));
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.session(INDIVIDUAL), queue);
            List<Message> got = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                got.add(Mail.must(consumer));
            }
            got.get(2).acknowledge();
            got.get(0).acknowledge();
        }
        assertEquals(List.of("m1#2!", "m3#2!", "m4#1"), Mail.take(broker.url(), queue, 3));
    }

    /** INDIVIDUAL in a recovered session: only what was not acknowledged comes again. */
    @Test
    void individual_recover() throws Exception {
        String queue = Mail.unique("individual-recover");
        Mail.send(broker.url(), queue, Mail.numbered(3));
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(INDIVIDUAL);
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.must(consumer);
            Mail.must(consumer).acknowledge();
            s.recover();
            for (String want : List.of("m0#2!", "m2#1")) {
                Message m = Mail.must(consumer);
                assertEquals(want, Mail.label(m));
                m.acknowledge();
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** acknowledge() in CLIENT_ACK covers the whole session, over two consumers. */
    @Test
    void client_acknowledge_covers_the_session() throws Exception {
        String one = Mail.unique("one");
        String two = Mail.unique("two");
        Mail.send(broker.url(), two, "b0");
        Mail.send(broker.url(), one, "a0", "a1");
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer first = Client.consumer(s, one);
            MessageConsumer second = Client.consumer(s, two);
            Mail.must(first);
            Mail.must(second).acknowledge();
            Mail.must(first);
        }
        assertEquals(List.of("a1#2!"), Mail.take(broker.url(), one, 1));
        assertEquals(List.of(), Mail.take(broker.url(), two, 0));
    }

    /** R-CLIENT-22: acknowledgements saved up by the client; a close sends them. */
    @ParameterizedTest
    @ValueSource(ints = {10, 1000})
    void optimized_acknowledgements(int prefetch) throws Exception {
        String queue = Mail.unique("optimized");
        Mail.send(broker.url(), queue, Mail.numbered(50));
        try (Client c = Client.to(broker.url()).prefetch(prefetch).factory(f -> f.setOptimizeAcknowledge(true)).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            for (int i = 0; i < 50; i++) {
                assertEquals("m" + i + "#1", Mail.label(Mail.must(consumer)));
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-CLIENT-24: transactedIndividualAck sends INDIVIDUAL acks in the transaction. */
    @Test
    void individual_acks_in_a_transaction() throws Exception {
        String queue = Mail.unique("transacted-individual");
        Mail.send(broker.url(), queue, Mail.numbered(6));
        try (Client c = Client.to(broker.url()).factory(f -> f.setTransactedIndividualAck(true)).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            assertEquals("m1#1", Mail.label(Mail.must(consumer)));
            s.commit();
            assertEquals("m2#1", Mail.label(Mail.must(consumer)));
            assertEquals("m3#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            assertEquals(List.of("m2#2!", "m3#2!", "m4#1", "m5#1"), Mail.drain(consumer, 4));
            s.commit();
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-CLIENT-46: nonBlockingRedelivery lets others pass the message that waits. */
    @Test
    void non_blocking_redelivery() throws Exception {
        String queue = Mail.unique("non-blocking");
        Mail.send(broker.url(), queue, Mail.numbered(3));
        try (Client c = Client.to(broker.url()).factory(f -> f.setNonBlockingRedelivery(true))
                .policy(p -> p.setInitialRedeliveryDelay(2000)).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            List<String> seen = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                seen.add(Mail.label(Mail.must(consumer)));
                s.commit();
            }
            assertEquals(List.of("m1#1", "m2#1", "m0#2!"), seen);
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-CLIENT-46: with nonBlockingRedelivery batches come in another order; each message is given up with its own. */
    @ParameterizedTest
    @CsvSource({"3,false", "5,false", "3,true"})
    @Reference.Beyond("R-CLIENT-44: a range takes what lies between, or is refused")
    void non_blocking_batches(int batch, boolean pattern) throws Exception {
        String queue = Mail.unique("batches");
        Mail.send(broker.url(), queue, Mail.numbered(15));
        Mail.send(broker.url(), queue + ".b", Mail.numbered(4));
        Map<String, Integer> seen = new HashMap<>();
        List<String> errors = new CopyOnWriteArrayList<>();
        try (Client c = Client.to(broker.url()).limit(2).factory(f -> f.setNonBlockingRedelivery(true)).policy(p -> {
            p.setInitialRedeliveryDelay(100);
            p.setRedeliveryDelay(170);
        }).open()) {
            c.connection.setExceptionListener(e -> errors.add(e.toString()));
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, pattern ? queue + ".>" : queue);
            int n = 0;
            for (Message m = Mail.must(consumer); m != null; m = next(s, consumer, pattern ? List.of(queue, queue + ".b") : List.of(queue))) {
                int count = seen.merge(m.getJMSMessageID(), 1, Integer::sum);
                assertEquals(count, Mail.count(m), Mail.body(m));
                if (++n % batch == 0) {
                    Thread.sleep(30);
                    s.rollback();
                }
            }
        }
        assertEquals(List.of(), errors);
        List<Message> dead = Mail.deadLetters(broker.url(), queue, 15);
        if (pattern) {
            dead.addAll(Mail.deadLetters(broker.url(), queue + ".b", 4));
        }
        for (Message m : dead) {
            assertEquals(seen.get(m.getJMSMessageID()).longValue(), m.getLongProperty("deliveryAttempts"), Mail.body(m));
        }
    }

    /** The next message, which may be one of a last batch that is not full; null when the client has given all up. */
    private static Message next(Session s, MessageConsumer consumer, List<String> queues) throws Exception {
        Message m = consumer.receive(1500);
        for (; m == null; m = consumer.receive(1500)) {
            s.rollback();
            int left = 0;
            for (String queue : queues) {
                left += Mail.browse(broker.url(), queue).size();
            }
            if (left == 0) {
                return null;
            }
        }
        return m;
    }

    /** sendAcksAsync=false: each ack is a request that wants its response. */
    @Test
    void synchronous_acknowledgements() throws Exception {
        String queue = Mail.unique("sync-ack");
        Mail.send(broker.url(), queue, Mail.numbered(10));
        try (Client c = Client.to(broker.url()).factory(f -> f.setSendAcksAsync(false)).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            for (int i = 0; i < 10; i++) {
                assertEquals("m" + i, Mail.next(consumer));
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-CLIENT-50: a pull consumer's three kinds of receive. */
    @Test
    void pull_consumer() throws Exception {
        String queue = Mail.unique("pull");
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            assertNull(consumer.receiveNoWait());
            long start = System.nanoTime();
            assertNull(consumer.receive(300));
            long took = (System.nanoTime() - start) / 1_000_000;
            assertTrue(took >= 280 && took < Mail.SOON, took + " ms");
            Mail.send(broker.url(), queue, "m0", "m1", "m2");
            assertEquals("m0", Mail.body(consumer.receiveNoWait()));
            assertEquals("m1", Mail.body(consumer.receive()));
            assertEquals("m2", Mail.body(consumer.receive(Mail.SOON)));
            BlockingQueue<Message> late = new LinkedBlockingQueue<>();
            Thread t = new Thread(() -> {
                try {
                    late.add(consumer.receive());
                } catch (Exception e) {
                    Thread.currentThread().interrupt();
                }
            });
            t.start();
            Thread.sleep(200);
            Mail.send(broker.url(), queue, "m3");
            assertEquals("m3", Mail.body(late.poll(Mail.SOON, TimeUnit.MILLISECONDS)));
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** A pull consumer holds one message only: what it does not ask for goes to others. */
    @Test
    void pull_takes_no_more_than_asked() throws Exception {
        String queue = Mail.unique("pull-one");
        Mail.send(broker.url(), queue, "m0", "m1");
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            Session s = c.transacted();
            assertEquals("m0", Mail.next(Client.consumer(s, queue)));
            assertEquals(List.of("m1#1"), Mail.take(broker.url(), queue, 1));
            s.rollback();
        }
        assertEquals(List.of("m0#2!"), Mail.take(broker.url(), queue, 1));
    }

    /** R-CLIENT-50, 53 in a transaction: rolled back and pulled again. */
    @Test
    void pull_and_rollback() throws Exception {
        String queue = Mail.unique("pull-rollback");
        Mail.send(broker.url(), queue, "m0", "m1");
        try (Client c = Client.to(broker.url()).prefetch(0).limit(2).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String want : List.of("m0#1", "m0#2!", "m0#3!", "m1#1")) {
                assertEquals(want, Mail.label(Mail.must(consumer)));
                if (want.startsWith("m0")) {
                    s.rollback();
                }
            }
            s.commit();
            assertNull(consumer.receiveNoWait());
        }
        assertEquals(List.of("m0"), Mail.bodies(Mail.deadLetters(broker.url(), queue, 1)));
    }

    /** Prefetch 1: two consumers share, message by message; a blocked one does not hoard. */
    @Test
    void prefetch_one_shares() throws Exception {
        String queue = Mail.unique("share");
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch fast = new CountDownLatch(8);
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            CountDownLatch blocked = new CountDownLatch(1);
            Client.consumer(c.auto(), queue).setMessageListener(m -> {
                blocked.countDown();
                try {
                    release.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            Mail.send(broker.url(), queue, "stuck");
            assertTrue(blocked.await(Mail.SOON, TimeUnit.MILLISECONDS));
            Client.consumer(c.auto(), queue).setMessageListener(m -> fast.countDown());
            Mail.send(broker.url(), queue, Mail.numbered(9));
            assertTrue(fast.await(Mail.SOON, TimeUnit.MILLISECONDS), fast.getCount() + " of 8 not delivered");
            release.countDown();
            Mail.awaitDepth(broker.url(), queue, 0);
        }
    }

    /** Many consumers of one queue in one connection: each message goes to exactly one. */
    @Test
    void competing_consumers() throws Exception {
        String queue = Mail.unique("compete");
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        try (Client c = Client.to(broker.url()).prefetch(5).open()) {
            for (int i = 0; i < 4; i++) {
                Client.consumer(c.auto(), queue).setMessageListener(m -> {
                    try {
                        seen.add(Mail.label(m));
                    } catch (Exception e) {
                        seen.add(e.toString());
                    }
                });
            }
            Mail.send(broker.url(), queue, Mail.numbered(100));
            List<String> got = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                String label = seen.poll(Mail.SOON, TimeUnit.MILLISECONDS);
                assertNotNull(label, "only " + got.size());
                got.add(label);
            }
            assertEquals(100, got.stream().distinct().count());
            Thread.sleep(100);
            assertTrue(seen.isEmpty());
        }
    }

    /** R-CLIENT-10, table 3.2: in a transacted session a listener's exception changes nothing; commit takes the message. */
    @Test
    void listener_exception_in_a_transaction() throws Exception {
        String queue = Mail.unique("transacted-listener");
        Mail.send(broker.url(), queue, "m0");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            CountDownLatch once = new CountDownLatch(1);
            Client.consumer(s, queue).setMessageListener(m -> {
                once.countDown();
                throw new IllegalStateException("swallowed by the client");
            });
            assertTrue(once.await(Mail.SOON, TimeUnit.MILLISECONDS));
            Thread.sleep(100);
            s.commit();
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** A pull that does not wait finds what is there: just behind an acknowledgement, and behind what its selector does not want. */
    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED})
    @Reference.Beyond("ActiveMQ answers that there is nothing where it has not paged in what there is")
    void receive_no_wait_finds_what_is_there(int mode) throws Exception {
        String queue = Mail.unique("nowait");
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            Session s = c.session(mode);
            Session sender = c.transacted();
            String[] unwanted = new String[3000];
            Arrays.fill(unwanted, "unwanted");
            Mail.send(sender, queue, unwanted);
            sender.commit();
            for (int i = 0; i < 20; i++) {
                Message m = Mail.text(sender, queue, "w" + i);
                m.setBooleanProperty("wanted", true);
                Client.producer(sender, queue).send(m);
            }
            sender.commit();
            MessageConsumer k = s.createConsumer(Client.destination(queue), "wanted = TRUE");
            for (int i = 0; i < 20; i++) {
                Message m = k.receiveNoWait();
                assertEquals("w" + i + "#1", Mail.label(m));
                if (mode == Session.CLIENT_ACKNOWLEDGE) {
                    m.acknowledge();
                } else if (mode == Session.SESSION_TRANSACTED) {
                    s.commit();
                }
            }
            assertNull(k.receiveNoWait());
            k.close();
            MessageConsumer all = Client.consumer(s, queue);
            for (int i = 0; i < 300; i++) {
                Message m = all.receiveNoWait();
                assertEquals("unwanted#1", Mail.label(m), "at " + i);
                if (mode == Session.CLIENT_ACKNOWLEDGE) {
                    m.acknowledge();
                } else if (mode == Session.SESSION_TRANSACTED) {
                    s.commit();
                }
            }
        }
    }
}

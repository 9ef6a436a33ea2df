package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TransactionRolledBackException;
import org.apache.activemq.ActiveMQConnectionMetaData;
import org.apache.activemq.command.ActiveMQQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The failover transport: reconnects with outstanding messages and transactions; C22. */
class FailoverTest {
    private static final String QUICK = "?initialReconnectDelay=10&maxReconnectDelay=100&useExponentialBackOff=false";

    @RegisterExtension static final Broker broker = Broker.plain();

    private static String failover(String url) {
        return "failover:(" + url + ")" + QUICK;
    }

    /** Sends and receives go on over a restart, each message once. */
    @Test
    void goes_on_after_a_restart() throws Exception {
        String queue = Mail.unique("restart");
        try (Client c = Client.open(failover(broker.process().url()))) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.send(s, queue, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.awaitDepth(broker.url(), queue, 0); // its acknowledgement is on its way, and may not be cut off
            broker.process().restart();
            Mail.send(s, queue, "m1");
            assertEquals("m1#1", Mail.label(Mail.must(consumer)));
            Mail.none(consumer);
        }
    }

    /** R-CLIENT-60, R-CLIENT-64: a cut rolls a transaction back; its messages come again, counted, and the prefetched ones too. */
    @Test
    void cut_in_the_middle_of_a_transaction() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0", "m1", "m2");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, in);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(s, out, "forwarded");
            CountDownLatch noticed = c.noticesCut();
            proxy.cut();
            assertTrue(noticed.await(Mail.SOON, TimeUnit.MILLISECONDS));
            // The connection's own listener, which marks the transaction, is told before the others.
            assertThrows(TransactionRolledBackException.class, s::commit);
            assertEquals(0, Mail.browse(broker.url(), out).size(), "sent in the rolled back transaction");
            for (int i = 0; i < 3; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                assertTrue(i > 0 || m.getJMSRedelivered(), "m0 flagged redelivered");
            }
            Mail.send(s, out, "again");
            s.commit();
        }
        assertEquals(List.of("again#1"), Mail.take(broker.url(), out, 1));
        Mail.awaitDepth(broker.url(), in, 0);
        Mail.deadLetters(broker.url(), in, 0);
    }

    /**
     * R-CLIENT-62, R-BRK-11: the cut comes as the acks of a commit go out; the client replays acks and commit on
     * the new connection, before anything was dispatched there. Where commit() returned, the message is not
     * seen again and what was sent is there; where it threw, the other way round.
     */
    @Test
    @Reference.Beyond("R-BRK-11: ActiveMQ ignores such acks and commits the rest")
    void cut_in_a_commit() throws Exception {
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.transacted();
            for (int round = 0; round < 10; round++) {
                String in = Mail.unique("in");
                String out = Mail.unique("out");
                Mail.send(broker.url(), in, "m0");
                MessageConsumer consumer = Client.consumer(s, in);
                Mail.must(consumer);
                Mail.send(s, out, "forwarded");
                proxy.cutInsteadOfNextRequest();
                boolean committed = commits(s);
                assertEquals(committed ? "none" : "m0#2!", Mail.label(consumer.receive(committed ? Mail.QUIET : Mail.SOON)));
                assertEquals(committed ? 1 : 0, Mail.browse(broker.url(), out).size(), "committed " + committed);
                s.commit();
                consumer.close();
                assertEquals(0, Mail.browse(broker.url(), in).size(), "left, committed at first: " + committed);
            }
        }
    }

    private static boolean commits(Session s) throws JMSException {
        try {
            s.commit();
            return true;
        } catch (TransactionRolledBackException e) {
            return false;
        }
    }

    /** R-CLIENT-62: a transaction that only sends is replayed after a cut and commits whole. */
    @Test
    void cut_while_sending_in_a_transaction() throws Exception {
        String queue = Mail.unique("replay");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.transacted();
            Mail.send(s, queue, "m0", "m1");
            proxy.cut();
            Mail.send(s, queue, "m2");
            s.commit();
        }
        assertEquals(List.of("m0#1", "m1#1", "m2#1"), Mail.take(broker.url(), queue, 3));
    }

    /** R-CLIENT-62: the reply to a commit is lost; the client is told "rolled back", the broker did it once. */
    @Test
    void lost_reply_to_a_commit() throws Exception {
        String queue = Mail.unique("in-doubt");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.transacted();
            Mail.send(s, queue, "m0", "m1");
            proxy.loseNextReply();
            assertThrows(TransactionRolledBackException.class, s::commit);
            assertTrue(proxy.awaitLost(1, Mail.SOON));
        }
        assertEquals(List.of("m0#1", "m1#1"), Mail.take(broker.url(), queue, 2));
    }

    /** R-CLIENT-61: consumers come back with prefetch 0 and get their window by a ConsumerControl. */
    @ParameterizedTest
    @CsvSource({"0", "1", "1000"})
    void consumers_come_back(int prefetch) throws Exception {
        String queue = Mail.unique("window");
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.to(failover(proxy.url())).prefetch(prefetch).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 3; i++) {
                Mail.send(broker.url(), queue, "m" + i);
                assertEquals("m" + i + "#1", Mail.label(Mail.must(consumer)));
                s.commit();
                proxy.cut();
                // What is sent before the broker notices the cut is handed out to the lost connection, and that
                // counts; and while it is not connected, a client answers a pull by itself, with nothing.
                c.roundTrip();
            }
            Mail.none(consumer);
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** A durable subscription over a failover connection: nothing missed, nothing twice. */
    @Test
    void durable_subscription_over_a_cut() throws Exception {
        String topic = Mail.unique("topic");
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.to(failover(proxy.url())).clientId(Mail.unique("client")).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = s.createDurableSubscriber(s.createTopic(topic), "sub");
            Mail.send(broker.url(), "topic://" + topic, "m0", "m1");
            assertEquals("m0", Mail.next(consumer));
            s.commit();
            proxy.cut();
            Mail.send(broker.url(), "topic://" + topic, "m2");
            assertEquals("m1", Mail.next(consumer));
            assertEquals("m2", Mail.next(consumer));
            if (!commits(s)) { // R-CLIENT-60: it had m1 before the cut was noticed
                assertEquals("m1", Mail.next(consumer));
                assertEquals("m2", Mail.next(consumer));
                s.commit();
            }
            Mail.none(consumer);
            consumer.close();
            s.unsubscribe("sub");
        }
    }

    /** R-EDGE-09: a message read but not acknowledged before the cut is not lost as a "duplicate". */
    @Test
    @Reference.Beyond("R-EDGE-09: dead-lettered unprocessed")
    void individual_acknowledgement_over_a_cut() throws Exception {
        String queue = Mail.unique("individual");
        Set<String> seen = new HashSet<>();
        Mail.send(broker.url(), queue, "m0", "m1");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.session(4);
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0", Mail.next(consumer));
            proxy.cut();
            Message m = consumer.receive(Mail.SOON);
            for (; m != null; m = consumer.receive(1500)) {
                seen.add(Mail.body(m));
                m.acknowledge();
            }
            assertTrue(seen.contains("m1"), seen.toString());
        }
        // m0 was delivered again or is still in the queue or a labelled dead letter: it is somewhere.
        Set<String> left = new HashSet<>(Mail.bodies(Mail.browse(broker.url(), queue)));
        try (Client c = Client.open(broker.url())) {
            for (Message dead : Mail.browse(c.auto(), Mail.DLQ, "origin = '" + queue + "'")) {
                assertTrue(dead.getStringProperty(Mail.CAUSE).contains("Suppressing duplicate"), "" + dead);
                left.add(Mail.body(dead));
            }
        }
        assertTrue(seen.contains("m0") || left.contains("m0"), seen + ", left " + left);
    }

    /** Clients before 6.3 can take a message at a cut and never give it to their listener; it is theirs until they close. */
    private static final boolean OLD = ActiveMQConnectionMetaData.PROVIDER_VERSION.startsWith("5.");

    /** One run of C22: a listener that commits every 5 messages, over three restarts. */
    @ParameterizedTest
    @CsvSource({"false,1000", "false,1", "true,1000", "true,1"})
    void C22_restart_in_the_middle_of_a_batch(boolean kill, int prefetch) throws Exception {
        String queue = Mail.unique("C22");
        int total = 200;
        Mail.send(broker.process().url(), queue, Mail.numbered(total));
        Random random = new Random(22);
        Batches batches = new Batches(total);
        Set<String> swallowed = Set.of();
        int restarts = kill ? 2 : 3;
        // Started after the listener is set: see a_listener_set_late.
        try (Client c = Client.to(failover(broker.process().url())).limit(6).prefetch(prefetch).stopped().open()) {
            batches.session = c.transacted();
            Client.consumer(batches.session, queue).setMessageListener(batches);
            c.connection.start();
            for (int i = 0; i < restarts; i++) {
                Thread.sleep(i == 0 ? 700 : 200 + random.nextInt(600));
                batches.restarts.incrementAndGet(); // a commit that a restart falls into is in doubt
                if (kill) {
                    broker.process().kill();
                    broker.process().start();
                } else {
                    broker.process().restart();
                }
                batches.restarts.incrementAndGet();
            }
            if (!batches.finish(prefetch > 1 && OLD ? 10 : 60)) {
                swallowed = batches.missing();
                assertTrue(prefetch > 1 && OLD && swallowed.size() <= restarts, "missing " + swallowed);
            } else {
                Mail.awaitDepth(broker.url(), queue, 0);
            }
        }
        if (swallowed.isEmpty()) {
            batches.check(restarts);
        }
        Mail.deadLetters(broker.url(), queue, 0);
        Set<String> left = new HashSet<>();
        for (String label : Mail.take(broker.url(), queue, swallowed.size())) {
            left.add(label.replaceAll("#.*", ""));
        }
        assertTrue(left.containsAll(swallowed), "kept by the client: " + swallowed + ", in the queue: " + left);
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /**
     * AMQ-9829, R-EDGE-09: what arrives between createConsumer and setMessageListener on a started connection
     * is marked as seen by the client, which after a cut takes it for duplicates and sends POISON, unread. None
     * of it may be lost: it was read, or is in the queue, or lies labelled in the dead letter queue.
     */
    @Test
    @Reference.Beyond("R-EDGE-09")
    void a_listener_set_late() throws Exception {
        String queue = Mail.unique("late");
        Mail.send(broker.url(), queue, Mail.numbered(20));
        Set<String> seen = new HashSet<>();
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client c = Client.open(failover(proxy.url()));
            MessageConsumer consumer = Client.consumer(c.session(Session.CLIENT_ACKNOWLEDGE), queue);
            Client.awaitBuffered(consumer, 20);
            CountDownLatch first = new CountDownLatch(1);
            consumer.setMessageListener(m -> {
                try {
                    first.countDown();
                    Thread.sleep(100);
                    synchronized (seen) {
                        seen.add(Mail.body(m));
                    }
                    m.acknowledge();
                } catch (JMSException | InterruptedException e) {
                    // Cut; it comes again.
                }
            });
            assertTrue(first.await(Mail.SOON, TimeUnit.MILLISECONDS));
            proxy.cut();
            Thread.sleep(1500);
            Client.abandon(c.connection);
        }
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            List<MessageConsumer> both = List.of(Client.consumer(s, queue),
                s.createConsumer(Client.destination(Mail.DLQ), "origin = '" + queue + "'"));
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000; seen.size() < 20 && System.nanoTime() < end; ) {
                for (MessageConsumer rest : both) {
                    for (Message m = rest.receive(Mail.QUIET); m != null; m = rest.receive(Mail.QUIET)) {
                        if (m.propertyExists(Mail.CAUSE)) {
                            assertTrue(m.getStringProperty(Mail.CAUSE).contains("Suppressing duplicate"));
                        }
                        seen.add(Mail.body(m));
                    }
                }
            }
        }
        assertEquals(new HashSet<>(Arrays.asList(Mail.numbered(20))), seen);
    }

    /** Another consumer has what a transaction had as its connection was lost: the transaction is rolled back, and the work is done once. */
    @Test
    void another_has_it_after_a_cut() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client other = Client.open(broker.url());
                Client c = Client.to(failover(proxy.url())).factory(f -> f.setConsumerFailoverRedeliveryWaitPeriod(1000)).open()) {
            Session s = c.transacted();
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, in))));
            Mail.send(s, out, "by the first");
            Session os = other.transacted();
            MessageConsumer heir = Client.consumer(os, in);
            proxy.stall();
            proxy.cut();
            assertEquals("m0#2!", Mail.label(Mail.must(heir)));
            Mail.send(os, out, "by the other");
            proxy.resume();
            assertThrows(TransactionRolledBackException.class, s::commit);
            os.commit();
        }
        assertEquals(List.of("by the other#1"), Mail.take(broker.url(), out, 1));
        Mail.awaitDepth(broker.url(), in, 0);
    }

    /** Consumed and forwarded in transactions that are cut at any point: each message is forwarded once. */
    @Test
    @Timeout(180)
    @Reference.Beyond("R-EDGE-09: the client takes some for duplicates, and ActiveMQ makes them dead letters")
    void forwarded_once_under_cuts() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        int total = 400;
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, in, Mail.numbered(total));
            s.commit();
        }
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.to(failover(proxy.url())).limit(-1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, in);
            Thread cutter = cutting(proxy, 25, 60);
            while (cutter.isAlive() || !Mail.browse(broker.url(), in).isEmpty()) {
                try {
                    for (Message m = consumer.receive(400); m != null; m = consumer.receive(400)) {
                        Mail.send(s, out, Mail.body(m));
                        s.commit();
                    }
                } catch (JMSException e) {
                    s.rollback();
                }
            }
        }
        List<String> got = new ArrayList<>();
        for (String label : Mail.take(broker.url(), out, total)) {
            got.add(label.replaceAll("#.*", ""));
        }
        assertEquals(total, got.size());
        assertEquals(new HashSet<>(Arrays.asList(Mail.numbered(total))), new HashSet<>(got));
        Mail.awaitDepth(broker.url(), in, 0);
        Mail.deadLetters(broker.url(), in, 0);
    }

    /** Cuts so many times, with so many milliseconds between. */
    private static Thread cutting(CuttingProxy proxy, int times, long pause) {
        Thread t = new Thread(() -> {
            try {
                for (int i = 0; i < times; i++) {
                    Thread.sleep(pause);
                    proxy.cut();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        t.start();
        return t;
    }

    /** A pull consumer whose connection is cut again and again gets everything, and each pull is answered in time. */
    @Test
    @Timeout(180)
    @Reference.Beyond("R-EDGE-09: the client takes some for duplicates, and ActiveMQ makes them dead letters")
    void pulls_under_cuts() throws Exception {
        String queue = Mail.unique("pulls");
        int total = 100;
        Mail.send(broker.url(), queue, Mail.numbered(total));
        Set<String> seen = new HashSet<>();
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.to(failover(proxy.url())).prefetch(0).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            Thread cutter = cutting(proxy, 20, 130);
            while (seen.size() < total || cutter.isAlive() || !Mail.browse(broker.url(), queue).isEmpty()) { // an acknowledgement may be lost
                Message m = consumer.receive(200);
                if (m != null) {
                    assertTrue(seen.add(Mail.body(m)) || m.getJMSRedelivered(), "again without the flag: " + Mail.label(m));
                    Thread.sleep(10);
                }
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** Batches that are received with pulls, whose connection is cut again and again: no pull stays without an answer. */
    @Test
    @Timeout(90)
    @Reference.Beyond("a pull that is answered with what the client keeps from the application is answered no more")
    void batches_pulled_under_cuts() throws Exception {
        String queue = Mail.unique("batches");
        int total = 150;
        Mail.send(broker.url(), queue, Mail.numbered(total));
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                Client c = Client.to(failover(proxy.url())).limit(-1).prefetch(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            Thread cutter = cutting(proxy, 25, 70);
            int batch = 0;
            for (int idle = 0; idle < 3 || cutter.isAlive(); ) {
                try {
                    Message m = consumer.receive(200);
                    idle = m == null ? idle + 1 : 0;
                    if (m == null || ++batch % 5 == 0) {
                        s.commit();
                    }
                } catch (JMSException e) {
                    s.rollback();
                    idle = 0;
                }
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** A browser whose connection is cut begins again, and comes to its end. */
    @Test
    @Timeout(60)
    void browser_over_cuts() throws Exception {
        String queue = Mail.unique("browse");
        int total = 1000;
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            Mail.send(s, queue, Mail.numbered(total));
            s.commit();
        }
        try (CuttingProxy proxy = new CuttingProxy(broker.port()); Client c = Client.open(failover(proxy.url()))) {
            Session s = c.auto();
            QueueBrowser browser = s.createBrowser(new ActiveMQQueue(queue));
            Set<String> seen = new HashSet<>();
            int n = 0;
            for (Enumeration<?> e = browser.getEnumeration(); e.hasMoreElements(); ) {
                seen.add(Mail.body((Message) e.nextElement()));
                if (++n == 200 || n == 500) {
                    CountDownLatch noticed = c.noticesCut();
                    proxy.cut();
                    assertTrue(noticed.await(Mail.SOON, TimeUnit.MILLISECONDS));
                }
            }
            assertEquals(total, seen.size());
            assertEquals(total, Mail.browse(s, queue, null).size());
        }
    }

    /** A transacted listener that works 20 ms a message, commits every 5 and notes what became of each. */
    private static final class Batches implements MessageListener {
        final CountDownLatch done = new CountDownLatch(1);
        private final int total;
        private final Set<String> committed = new HashSet<>();
        private final Set<String> doubtful = new HashSet<>();
        private final List<String> first = new ArrayList<>();
        private final List<String> wrong = new ArrayList<>();
        private final List<String> batch = new ArrayList<>();
        private final AtomicInteger exceptions = new AtomicInteger();
        private final AtomicLong last = new AtomicLong(System.nanoTime()); // when something came
        final AtomicInteger restarts = new AtomicInteger(); // begun and ended
        volatile Session session;

        Batches(int total) {
            this.total = total;
        }

        @Override
        public synchronized void onMessage(Message m) {
            last.set(System.nanoTime());
            try {
                String text = Mail.body(m);
                if (committed.contains(text)) {
                    wrong.add(text + " delivered after its commit");
                }
                if (doubtful.contains(text) && !m.getJMSRedelivered()) {
                    wrong.add(text + " repeated without the flag");
                }
                if (!first.contains(text)) {
                    first.add(text);
                }
                batch.add(text);
                Thread.sleep(20);
                Set<String> open = missing();
                open.removeAll(batch);
                if (batch.size() >= 5 || open.isEmpty()) {
                    commit();
                }
            } catch (JMSException | InterruptedException e) {
                wrong.add(e.toString());
            }
        }

        private void commit() {
            List<String> now = List.copyOf(batch);
            batch.clear();
            int before = restarts.get();
            try {
                session.commit();
                if (restarts.get() == before && before % 2 == 0) {
                    committed.addAll(now);
                    doubtful.removeAll(now);
                } else {
                    doubtful.addAll(now); // C22: a repeat is allowed, flagged redelivered
                }
            } catch (JMSException e) {
                exceptions.incrementAndGet();
                doubtful.addAll(now);
                try {
                    session.rollback();
                } catch (JMSException again) {
                    wrong.add("rollback: " + again);
                }
            }
            if (missing().isEmpty()) {
                done.countDown();
            }
        }

        /** Waits until all is done; false where nothing has come for so many seconds. */
        boolean finish(long seconds) throws InterruptedException {
            while (!done.await(100, TimeUnit.MILLISECONDS)) {
                if (System.nanoTime() - last.get() > TimeUnit.SECONDS.toNanos(seconds)) {
                    return false;
                }
            }
            return true;
        }

        /** What is neither committed nor in a commit whose outcome the client does not know. */
        synchronized Set<String> missing() {
            Set<String> out = new HashSet<>(Arrays.asList(Mail.numbered(total)));
            out.removeAll(committed);
            out.removeAll(doubtful);
            return out;
        }

        synchronized void check(int restarts) {
            if (!wrong.isEmpty()) {
                fail(wrong.toString());
            }
            assertEquals(Arrays.asList(Mail.numbered(total)), first, "order of first deliveries");
            assertTrue(exceptions.get() <= restarts, exceptions + " rollback exceptions for " + restarts + " restarts");
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import javax.jms.BytesMessage;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Figures and disk while messages fail. C16: counters stay right when messages expire under a consumer that
 * rolls back. C25: a hot retry loop neither eats the disk nor stops other queues.
 */
@Reference.Beyond("the figures are read from our admin API")
class RetryLoadTest {
    @RegisterExtension static final Broker broker = Broker.with("retry-load.xml");

    private static void awaitFigures(String queue, String want) throws Exception {
        new Operator(broker.process()).await(queue, want);
    }

    private static void send(Session s, String queue, String text, long timeToLive) throws JMSException {
        MessageProducer p = Client.producer(s, queue);
        p.setTimeToLive(timeToLive);
        p.send(Mail.text(s, queue, text));
        p.close();
    }

    /** C16 part 1: some become dead letters by the limit, the others by their time, and the figures add up. */
    @Test
    void C16_figures_add_up_when_messages_expire_under_a_rollback() throws Exception {
        Pace.keeps(RetryLoadTest::expireUnderRollback);
    }

    private static void expireUnderRollback() throws Exception {
        String queue = Mail.unique("C16.rollback");
        int tried = 0;
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session auto = c.auto();
            for (int i = 0; i < 20; i++) {
                send(auto, queue, "m" + i, 3000);
            }
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (Message m = Mail.must(consumer); m != null; m = consumer.receive(2000)) {
                tried++;
                Thread.sleep(300);
                s.rollback();
            }
        }
        assertTrue(tried <= 12, tried + " deliveries");
        Pace.inTime(tried >= 5, tried + " deliveries");
        awaitFigures(queue, "messages=0 out=0 enqueued=20 dequeued=20 deadLettered=20 expired=" + (20 - tried));
        int limit = 0;
        for (Message m : Mail.deadLetters(broker.url(), queue, 20)) {
            String cause = m.getStringProperty(Mail.CAUSE);
            limit += cause.contains("exceeds redelivery policy limit") ? 1 : 0;
            assertTrue(cause.contains("exceeds redelivery policy limit") || cause.contains("Message Expired"), cause);
        }
        assertEquals(tried, limit);
    }

    /** C16 part 2: a pull consumer gets the next message when the one it rolled back has expired, or is given up. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void C16_a_pull_consumer_gets_the_next_message(boolean closed) throws Exception {
        String queue = Mail.unique("C16.pull");
        try (Client c = Client.to(broker.url()).prefetch(0).limit(closed ? 5 : 0)
                .factory(f -> f.setConsumerExpiryCheckEnabled(false)).open()) {
            Session s = c.transacted();
            try (Client other = Client.open(broker.url())) {
                Session auto = other.auto();
                send(auto, queue, "short", 3000);
                send(auto, queue, "long", 0);
            }
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("short#1", Mail.label(Mail.must(consumer)));
            if (closed) {
                consumer.close();
            }
            s.rollback();
            if (closed) {
                consumer = Client.consumer(s, queue);
            }
            Thread.sleep(3500);
            assertEquals("long#1", Mail.label(Mail.must(consumer)));
            s.commit();
        }
        awaitFigures(queue, "messages=0 out=0 enqueued=2 dequeued=2 deadLettered=1");
        Mail.deadLetters(broker.url(), queue, 1);
    }

    /** C16 part 3: messages that expire at the client cost its consumer no credit. */
    @Test
    void C16_messages_that_expire_at_the_client_cost_no_credit() throws Exception {
        String queue = Mail.unique("C16.credit");
        try (Client c = Client.to(broker.url()).prefetch(400).open()) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            Session auto = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < 100; i++) {
                send(auto, queue, "short" + i, 1500);
                send(auto, queue, "m" + i, 0);
            }
            Thread.sleep(2500);
            for (int i = 0; i < 100; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                m.acknowledge();
            }
            Mail.none(consumer);
            awaitFigures(queue, "messages=0 out=0 enqueued=200 dequeued=200 deadLettered=100 expired=100");
            for (int i = 0; i < 200; i++) {
                send(auto, queue, "m" + i, 0);
            }
            for (int i = 0; i < 200; i++) {
                Message m = Mail.must(consumer);
                assertEquals("m" + i, Mail.body(m));
                m.acknowledge();
            }
            awaitFigures(queue, "messages=0 out=0 enqueued=400 dequeued=400 deadLettered=100 expired=100");
        }
        Mail.deadLetters(broker.url(), queue, 100);
    }

    /** The size of the data directory. */
    private static long directory() throws IOException {
        long[] sum = {0};
        try (Stream<Path> files = Files.walk(broker.process().data())) {
            files.forEach(f -> {
                try {
                    sum[0] += Files.isRegularFile(f) ? Files.size(f) : 0;
                } catch (NoSuchFileException e) {
                    // The store has just removed it.
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
        return sum[0];
    }

    /** Its size before a test: a broker that has just started is still making room for when the disk is full. */
    private static long directoryBefore() throws Exception {
        Path reserve = broker.process().data().resolve("RESERVE");
        long size = directory();
        for (long end = System.nanoTime() + 20_000_000_000L, last = -1; System.nanoTime() < end && (size != last || !Files.exists(reserve)); size = directory()) {
            last = size;
            Thread.sleep(250);
        }
        return size;
    }

    /** C25: a minute later the directory is what it was, and 16 MB at the most. */
    private static void awaitDirectory(long before) throws Exception {
        long grown = directory() - before;
        for (long end = System.nanoTime() + 60_000_000_000L; grown >= 16L << 20 && System.nanoTime() < end; grown = directory() - before) {
            Thread.sleep(500);
        }
        assertTrue(grown < 16L << 20, "the directory has still grown by " + grown + " bytes");
    }

    /** Fifty messages a second through a queue, until told to stop; the slowest, in milliseconds. */
    private static CompletableFuture<Long> steady(String queue, AtomicBoolean stop) {
        return CompletableFuture.supplyAsync(() -> {
            try (Client c = Client.open(broker.url())) {
                Session sending = c.auto();
                MessageProducer p = Client.producer(sending, queue);
                long[] slowest = {0};
                int[] got = {0};
                Client.consumer(c.auto(), queue).setMessageListener(m -> {
                    try {
                        long took = (System.nanoTime() - m.getLongProperty("at")) / 1_000_000;
                        synchronized (slowest) {
                            slowest[0] = Math.max(slowest[0], took);
                            got[0]++;
                            slowest.notifyAll();
                        }
                    } catch (JMSException e) {
                        throw new IllegalStateException(e);
                    }
                });
                int n = 0;
                for (; !stop.get(); n++) {
                    Message m = Mail.text(sending, queue, "m" + n);
                    m.setLongProperty("at", System.nanoTime());
                    p.send(m);
                    Thread.sleep(20);
                }
                synchronized (slowest) {
                    long end = System.nanoTime() + Mail.SOON * 1_000_000;
                    while (got[0] < n && System.nanoTime() < end) {
                        slowest.wait(100);
                    }
                    assertEquals(n, got[0], "messages of the other queue");
                    return slowest[0];
                }
            } catch (JMSException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** C25 points 1, 2 and 4: attempts without end and without delay, beside a queue that works. */
    @Test
    @Timeout(300)
    void C25_a_hot_loop_neither_eats_the_disk_nor_stops_others() throws Exception {
        Pace.keeps(RetryLoadTest::hotLoop);
    }

    private static void hotLoop() throws Exception {
        String queue = Mail.unique("C25.hot");
        int attempts = 5000;
        AtomicBoolean stop = new AtomicBoolean();
        CompletableFuture<Long> other = steady(Mail.unique("C25.other"), stop);
        long before = directoryBefore();
        byte[] body = new byte[1024];
        body[1023] = 7;
        try (Client c = Client.to(broker.url()).limit(-1).open()) {
            Session s = c.transacted();
            BytesMessage sent = s.createBytesMessage();
            sent.writeBytes(body);
            Client.producer(s, queue).send(sent);
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i < attempts; i++) {
                assertEquals(i, Mail.count(Mail.must(consumer)));
                s.rollback();
            }
            BytesMessage last = (BytesMessage) Mail.must(consumer);
            assertEquals(attempts, Mail.count(last));
            byte[] got = new byte[1024];
            assertEquals(1024, last.readBytes(got));
            assertEquals(7, got[1023]);
            s.commit();
        }
        long grown = directory() - before;
        assertTrue(grown < 64L << 20, "the directory has grown by " + grown + " bytes");
        stop.set(true);
        long slowest = other.get(30, TimeUnit.SECONDS);
        awaitFigures(queue, "messages=0 out=0 enqueued=1 dequeued=1 deadLettered=0");
        awaitDirectory(before);
        Pace.inTime(slowest < 500, "the other queue's slowest message took " + slowest + " ms");
    }

    /** C25 point 3: of two thousand dead letters nothing is left on the disk when they are consumed. */
    @Test
    void C25_consumed_dead_letters_leave_the_disk() throws Exception {
        String queue = Mail.unique("C25.dead");
        int n = 2000;
        long before = directoryBefore();
        try (Client c = Client.to(broker.url()).limit(0).prefetch(n).open()) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < n; i++) {
                BytesMessage m = s.createBytesMessage();
                byte[] body = new byte[8192];
                ThreadLocalRandom.current().nextBytes(body); // what cannot be compressed
                m.writeBytes(body);
                m.setStringProperty("origin", queue);
                p.send(m);
            }
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 0; i < n; i++) {
                Mail.must(consumer);
                s.rollback();
            }
        }
        awaitFigures(queue, "messages=0 out=0 enqueued=2000 dequeued=2000 deadLettered=2000");
        assertTrue(directory() - before > 8L << 20, "they were never on the disk");
        Mail.deadLetters(broker.url(), queue, n);
        awaitDirectory(before);
    }
}

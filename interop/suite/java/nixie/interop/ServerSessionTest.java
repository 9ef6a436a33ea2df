package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.ConnectionConsumer;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.ServerSession;
import javax.jms.ServerSessionPool;
import javax.jms.Session;
import org.apache.activemq.ActiveMQSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Connection consumers with sessions of a pool, as application servers deliver to message-driven beans (R-URI-04,
 * R-CLIENT-4A to 4C). The pool stands for the container: it runs a session and commits, or rolls back.
 */
@Timeout(120)
class ServerSessionTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    /** Decides whether the work on a message goes well. */
    private interface Work {
        boolean done(Message m) throws JMSException;
    }

    /** A container's pool of transacted sessions. */
    private final class Pool implements ServerSessionPool {
        private final BlockingQueue<ServerSession> free = new LinkedBlockingQueue<>();
        final List<String> seen = Collections.synchronizedList(new ArrayList<>());

        Pool(Connection connection, int size, int limit, Work work) throws JMSException {
            for (int i = 0; i < size; i++) {
                Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
                boolean[] well = {true};
                int[] count = {0};
                session.setMessageListener(m -> {
                    try {
                        seen.add(Mail.label(m));
                        count[0] = Mail.count(m);
                        well[0] = work.done(m);
                    } catch (JMSException e) {
                        throw new IllegalStateException(e);
                    }
                });
                free.add(new ServerSession() {
                    @Override
                    public Session getSession() {
                        return session;
                    }

                    @Override
                    public void start() {
                        threads.execute(() -> {
                            try {
                                do {
                                    session.run();
                                    if (well[0]) {
                                        session.commit();
                                    } else {
                                        session.rollback();
                                    }
                                } while (hasMore(session, !well[0] && (limit < 0 || count[0] <= limit)));
                            } catch (JMSException | InterruptedException e) {
                                seen.add(e.toString());
                            } finally {
                                free.add(this);
                            }
                        });
                    }
                });
            }
        }

        /** What was rolled back and not given up comes back to the session itself, a little later: its container runs it until it is empty. */
        private boolean hasMore(Session session, boolean expected) throws InterruptedException {
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000L; expected && !((ActiveMQSession) session).hasUncomsumedMessages() && System.nanoTime() < end; ) {
                Thread.sleep(10);
            }
            return ((ActiveMQSession) session).hasUncomsumedMessages();
        }

        @Override
        public ServerSession getServerSession() throws JMSException {
            try {
                ServerSession s = free.poll(Mail.SOON, TimeUnit.MILLISECONDS);
                if (s == null) {
                    throw new JMSException("no session becomes free");
                }
                return s;
            } catch (InterruptedException e) {
                throw new JMSException(e.toString());
            }
        }

        void await(int n) throws InterruptedException {
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000L; seen.size() < n && System.nanoTime() < end; ) {
                Thread.sleep(10);
            }
        }
    }

    private static Client.Builder waiting(int limit) {
        return Client.to(broker.url()).limit(limit).policy(p -> {
            p.setInitialRedeliveryDelay(20);
            p.setRedeliveryDelay(20);
        });
    }

    /** Four sessions share what one connection consumer gets; nothing is left, nothing comes twice. */
    @Test
    void sessions_share_the_work() throws Exception {
        String queue = Mail.unique("pool");
        Mail.send(broker.url(), queue, Mail.numbered(100));
        try (Client c = Client.open(broker.url())) {
            Pool pool = new Pool(c.connection, 4, 6, m -> true);
            ConnectionConsumer consumer = c.connection.createConnectionConsumer(Client.destination(queue), null, pool, 1);
            pool.await(100);
            Mail.awaitDepth(broker.url(), queue, 0);
            consumer.close();
            List<String> want = new ArrayList<>();
            for (String body : Mail.numbered(100)) {
                want.add(body + "#1");
            }
            List<String> seen = new ArrayList<>(pool.seen);
            Collections.sort(seen);
            Collections.sort(want);
            assertEquals(want, seen);
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** R-CLIENT-4B: what is rolled back comes again, and is given up at the connection's limit with its cause. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void rolled_back_up_to_the_limit(int limit) throws Exception {
        String queue = Mail.unique("bean");
        Mail.send(broker.url(), queue, "poison", "fine");
        Pool pool;
        try (Client c = waiting(limit).open()) {
            pool = new Pool(c.connection, 1, limit, m -> !Mail.body(m).equals("poison"));
            ConnectionConsumer consumer = c.connection.createConnectionConsumer(Client.destination(queue), null, pool, 1);
            Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
            assertEquals("poison", Mail.body(dead));
            String cause = dead.getStringProperty(Mail.CAUSE);
            assertTrue(cause.contains("redelivery policy limit"), cause);
            pool.await(limit + 2);
            Mail.awaitDepth(broker.url(), queue, 0);
            consumer.close();
        }
        List<String> want = new ArrayList<>();
        for (int i = 1; i <= limit + 1; i++) {
            want.add("poison#" + i + (i > 1 ? "!" : ""));
        }
        List<String> poison = new ArrayList<>(pool.seen);
        poison.removeIf(s -> !s.startsWith("poison"));
        assertEquals(want, poison);
    }

    /** R-CLIENT-4C: what a closed connection consumer had is there for the next one, and none of it is lost. */
    @Test
    void what_a_closed_consumer_had_comes_again() throws Exception {
        String queue = Mail.unique("closed");
        Mail.send(broker.url(), queue, Mail.numbered(10));
        try (Client c = waiting(-1).open()) {
            Pool pool = new Pool(c.connection, 1, -1, m -> false);
            ConnectionConsumer consumer = c.connection.createConnectionConsumer(Client.destination(queue), null, pool, 1);
            pool.await(5);
            consumer.close();
        }
        List<String> got = Mail.take(broker.url(), queue, 10).stream().map(label -> label.substring(0, label.indexOf('#'))).sorted().toList();
        assertEquals(List.of(Mail.numbered(10)), got);
        Mail.deadLetters(broker.url(), queue, 0);
    }
}

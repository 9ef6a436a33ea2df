package nixie.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import javax.jms.Connection;
import javax.jms.InvalidClientIDException;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.transport.DefaultTransportListener;

/**
 * One connection of the unmodified client, started, that closes at the end of a try block. The redelivery
 * policy starts at the client's defaults, but with both delays 0.
 */
final class Client implements AutoCloseable {
    final ActiveMQConnection connection;

    private Client(ActiveMQConnection connection) {
        this.connection = connection;
    }

    /** A connection with everything at its default, delays 0. */
    static Client open(String url) throws JMSException {
        return to(url).open();
    }

    /** Comes down when the client has noticed that its connection is gone; its own listener is told before. */
    CountDownLatch noticesCut() {
        CountDownLatch noticed = new CountDownLatch(1);
        connection.addTransportListener(new DefaultTransportListener() {
            @Override
            public void transportInterupted() {
                noticed.countDown();
            }
        });
        return noticed;
    }

    /** Comes down when the client is connected again. */
    CountDownLatch noticesReturn() {
        CountDownLatch back = new CountDownLatch(1);
        connection.addTransportListener(new DefaultTransportListener() {
            @Override
            public void transportResumed() {
                back.countDown();
            }
        });
        return back;
    }

    static Builder to(String url) {
        return new Builder(url);
    }

    /** A setting of the connection rather than the factory. */
    private interface Late {
        void apply(ActiveMQConnection c) throws JMSException;
    }

    /** What is set before the connection is made. */
    static final class Builder {
        private final ActiveMQConnectionFactory factory;
        private final RedeliveryPolicy policy = new RedeliveryPolicy();
        private final List<Late> late = new ArrayList<>();
        private boolean start = true;

        private Builder(String url) {
            factory = new ActiveMQConnectionFactory(url);
            factory.setTrustAllPackages(true);
            policy.setInitialRedeliveryDelay(0);
            policy.setRedeliveryDelay(0);
        }

        /** maximumRedeliveries. */
        Builder limit(int n) {
            policy.setMaximumRedeliveries(n);
            return this;
        }

        Builder policy(Consumer<RedeliveryPolicy> change) {
            change.accept(policy);
            return this;
        }

        Builder prefetch(int n) {
            factory.getPrefetchPolicy().setAll(n);
            return this;
        }

        Builder clientId(String id) {
            late.add(c -> c.setClientID(id));
            return this;
        }

        Builder factory(Consumer<ActiveMQConnectionFactory> change) {
            change.accept(factory);
            return this;
        }

        Builder stopped() {
            start = false;
            return this;
        }

        Client open() throws JMSException {
            factory.setRedeliveryPolicy(policy);
            ActiveMQConnection c = (ActiveMQConnection) factory.createConnection();
            try {
                for (Late change : late) {
                    change.apply(c);
                }
                if (start) {
                    c.start();
                }
            } catch (JMSException | RuntimeException e) {
                c.close();
                throw e;
            }
            return new Client(c);
        }
    }

    Session transacted() throws JMSException {
        return connection.createSession(true, Session.SESSION_TRANSACTED);
    }

    Session auto() throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    Session session(int mode) throws JMSException {
        return connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
    }

    /** Waits until so many messages lie in a client, which its consumer has not received yet. */
    static void awaitBuffered(MessageConsumer c, int n) throws Exception {
        Mail.await(n + " messages in the client", () -> ((ActiveMQMessageConsumer) c).getMessageSize() == n);
    }

    /** Waits until the broker has let go of a connection that is lost: then its client id is free, and what it had is back. */
    static void awaitGone(String url, String id) throws Exception {
        Mail.await("the end of " + id, () -> {
            try {
                to(url).clientId(id).open().close();
                return true;
            } catch (InvalidClientIDException e) {
                return false;
            }
        });
    }

    /** Returns once the broker has answered on the connection as it is now: after a cut, once it has let go of the old one. */
    void roundTrip() throws JMSException {
        Session s = auto();
        s.createConsumer(s.createTopic("round.trip")).close();
        s.close();
    }

    /** A consumer on a queue, or on whatever a name with a prefix such as topic:// says. */
    static MessageConsumer consumer(Session s, String name) throws JMSException {
        return s.createConsumer(destination(name));
    }

    static MessageProducer producer(Session s, String name) throws JMSException {
        return s.createProducer(destination(name));
    }

    static ActiveMQDestination destination(String name) {
        return ActiveMQDestination.createDestination(name, ActiveMQDestination.QUEUE_TYPE);
    }

    /** Closes a connection whose socket may be gone, without waiting for an answer. */
    static void abandon(Connection c) {
        try {
            ((ActiveMQConnection) c).setCloseTimeout(1);
            c.close();
        } catch (JMSException e) {
            // It was cut on purpose.
        }
    }

    @Override
    public void close() throws JMSException {
        connection.close();
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.pool.PooledConnectionFactory;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.springframework.jms.JmsException;
import org.springframework.jms.core.JmsTemplate;

/** Pools that applications put between themselves and the client. */
class SpringPoolTest {
    @RegisterExtension
    static final Broker broker = Broker.plain();

    /** A pool, and how to stop it. */
    record Pool(String name, Function<ActiveMQConnectionFactory, ConnectionFactory> make, java.util.function.Consumer<ConnectionFactory> stop) {
        @Override
        public String toString() {
            return name;
        }
    }

    static Stream<Pool> pools() {
        return Stream.of(
            new Pool("pooled-jms", f -> {
                JmsPoolConnectionFactory p = new JmsPoolConnectionFactory();
                p.setConnectionFactory(f);
                p.setMaxConnections(2);
                return p;
            }, p -> ((JmsPoolConnectionFactory) p).stop()),
            new Pool("activemq-pool", f -> {
                PooledConnectionFactory p = new PooledConnectionFactory(f);
                p.setMaxConnections(2);
                return p;
            }, p -> ((PooledConnectionFactory) p).stop()));
    }

    /** Sessions go back to the pool with rollbacks, and come out as new: each attempt is counted once. */
    @ParameterizedTest
    @MethodSource("pools")
    void rollback_and_commit(Pool pool) throws Exception {
        String queue = Mail.unique("pool");
        ConnectionFactory f = pool.make().apply(Containers.factory(broker.url(), 2, 0));
        try {
            JmsTemplate template = new JmsTemplate(f);
            for (String text : List.of("m0", "m1")) {
                template.send(queue, s -> Mail.text(s, queue, text));
            }
            for (String want : List.of("m0#1", "m0#2!", "m0#3!")) {
                try (Connection c = f.createConnection(); Session s = c.createSession(true, Session.SESSION_TRANSACTED)) {
                    c.start();
                    MessageConsumer k = s.createConsumer(s.createQueue(queue));
                    assertEquals(want, Mail.label(k.receive(Mail.SOON)));
                    s.rollback();
                }
            }
            try (Connection c = f.createConnection(); Session s = c.createSession(true, Session.SESSION_TRANSACTED)) {
                c.start();
                MessageConsumer k = s.createConsumer(s.createQueue(queue));
                Message m = k.receive(Mail.SOON); // m0 is given up unread: three failures are more than two
                assertEquals("m1#1", Mail.label(m));
                s.commit();
                assertNull(k.receive(Mail.QUIET));
            }
            assertEquals("m0", Mail.body(Mail.deadLetters(broker.url(), queue, 1).get(0)));
        } finally {
            pool.stop().accept(f);
        }
    }

    /** The broker goes and comes back: the pool has dead connections, drops them, and serves on; none is left over at the broker. */
    @ParameterizedTest
    @MethodSource("pools")
    void over_a_restart(Pool pool) throws Exception {
        try (BrokerProcess own = Broker.own("pool")) {
            String queue = Mail.unique("pool");
            for (String url : List.of(own.url(), "failover:(" + own.url() + ")?initialReconnectDelay=50")) {
                ConnectionFactory f = pool.make().apply(Containers.factory(url, 2, 0));
                try {
                    JmsTemplate template = new JmsTemplate(f);
                    template.setReceiveTimeout(Mail.SOON);
                    int refused = 0;
                    for (int round = 0; round < 3; round++) {
                        for (int i = 0; i < 4; i++) {
                            String text = "m" + round + i;
                            for (boolean sent = false; !sent; ) {
                                try {
                                    template.send(queue, s -> Mail.text(s, queue, text));
                                    sent = true;
                                } catch (JmsException e) {
                                    assertTrue(++refused <= 4 * (round + 1), "" + e); // two connections, each found dead once
                                    Thread.sleep(50);
                                }
                            }
                            assertEquals(text + "#1", Mail.label(template.receive(queue)));
                        }
                        if (round == 0) {
                            Mail.awaitDepth(own.url(), queue, 0); // acknowledgements that nobody waits for are on disk a little later
                            own.kill();
                            own.start();
                        } else if (round == 1) {
                            own.restart();
                        }
                    }
                } finally {
                    pool.stop().accept(f);
                }
                Mail.awaitDepth(own.url(), queue, 0);
            }
            Mail.deadLetters(own.url(), queue, 0);
        }
    }
}

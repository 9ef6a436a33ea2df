package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.InvalidClientIDException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.MessageAck;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Connections: exceptions, client ids, credentials, wire format options and versions. */
class ConnectionTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** ExceptionListener and failing calls when the broker goes, in an orderly way or not. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void exception_listener(boolean kill) throws Exception {
        try (BrokerProcess own = Broker.own("gone")) {
            Client c = Client.open(own.url());
            CountDownLatch told = new CountDownLatch(1);
            c.connection.setExceptionListener(e -> told.countDown());
            Session s = c.auto();
            Mail.send(s, Mail.unique("q"), "m0");
            if (kill) {
                own.kill();
            } else {
                own.terminate();
            }
            assertTrue(told.await(Mail.SOON, TimeUnit.MILLISECONDS), "not told");
            assertThrows(JMSException.class, () -> Mail.send(s, Mail.unique("q"), "m1"));
            Client.abandon(c.connection);
            own.start();
        }
    }

    @Test
    void client_id_in_use() throws Exception {
        String id = Mail.unique("client");
        try (Client first = Client.to(broker.url()).clientId(id).open()) {
            assertNotNull(first);
            JMSException e = assertThrows(JMSException.class, () -> Client.to(broker.url()).clientId(id).open().close());
            assertEquals(InvalidClientIDException.class, e.getClass());
            // The first goes on.
            String queue = Mail.unique("q");
            Mail.send(first.auto(), queue, "m0");
            assertEquals("m0", Mail.next(Client.consumer(first.auto(), queue)));
        }
        Client.to(broker.url()).clientId(id).open().close();
    }

    /** A client id is free again when its connection was cut. */
    @Test
    void client_id_after_a_cut() throws Exception {
        String id = Mail.unique("client");
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client c = Client.to(proxy.url()).clientId(id).open();
            proxy.cut();
            Client.abandon(c.connection);
        }
        Client.awaitGone(broker.url(), id);
    }

    /** Without authentication configured, credentials are accepted and not looked at. */
    @Test
    void any_credentials() throws Exception {
        Connection c = new ActiveMQConnectionFactory(broker.url()).createConnection("someone", "secret");
        c.start();
        assertNotNull(c.getMetaData().getJMSProviderName());
        c.close();
    }

    /** Every option of the wire format, through the main job: send, roll back, give up, dead letter. */
    @ParameterizedTest
    @ValueSource(strings = {"", "wireFormat.tightEncodingEnabled=false", "wireFormat.cacheEnabled=false",
        "wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false", "wireFormat.stackTraceEnabled=false",
        "wireFormat.tcpNoDelayEnabled=false", "wireFormat.cacheSize=128", "wireFormat.maxFrameSize=1000000",
        "wireFormat.maxInactivityDuration=0", "wireFormat.version=1", "wireFormat.version=2", "wireFormat.version=3",
        "wireFormat.version=4", "wireFormat.version=5", "wireFormat.version=6", "wireFormat.version=7",
        "wireFormat.version=8", "wireFormat.version=9", "wireFormat.version=10", "wireFormat.version=11",
        "wireFormat.version=12"})
    void wire_format(String options) throws Exception {
        String queue = Mail.unique("wire");
        String url = broker.url() + (options.isEmpty() ? "" : "?" + options);
        List<DeadLetterTest.Kind> kinds = new ArrayList<>(List.of(DeadLetterTest.Kind.values()));
        try (Client c = Client.to(url).limit(1).open()) {
            Session s = c.transacted();
            for (DeadLetterTest.Kind kind : kinds) {
                Message m = kind.create(s);
                m.setStringProperty("origin", queue);
                m.setJMSReplyTo(Client.destination("topic://replies"));
                m.setJMSCorrelationID(kind.name());
                Client.producer(s, queue).send(m);
            }
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int round = 1; round <= 2; round++) {
                for (DeadLetterTest.Kind kind : kinds) {
                    Message m = Mail.must(consumer);
                    assertEquals(round, Mail.count(m));
                    assertEquals(kind.name(), m.getJMSCorrelationID());
                    assertEquals(Client.destination("topic://replies"), m.getJMSReplyTo());
                    kind.check(m);
                }
                s.rollback();
            }
            Mail.none(consumer);
        }
        List<Message> dead = Mail.deadLetters(broker.url(), queue, kinds.size());
        for (int i = 0; i < dead.size(); i++) {
            kinds.get(i).check(dead.get(i));
        }
    }

    /** Two hundred connections, each with a consumer, at once. */
    @Test
    void many_connections() throws Exception {
        String queue = Mail.unique("many");
        List<Client> all = new ArrayList<>();
        try {
            List<MessageConsumer> consumers = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                Client c = Client.to(broker.url()).factory(f -> f.setWatchTopicAdvisories(false)).open();
                all.add(c);
                consumers.add(Client.consumer(c.auto(), queue + "." + i));
            }
            for (int i = 0; i < 200; i += 20) {
                Mail.send(all.get(0).auto(), queue + "." + i, "m" + i);
                assertEquals("m" + i, Mail.next(consumers.get(i)));
            }
        } finally {
            for (Client c : all) {
                c.close();
            }
        }
    }

    /** A stopped connection gets nothing; started, it gets everything. */
    @Test
    void stop_and_start() throws Exception {
        String queue = Mail.unique("stopped");
        Mail.send(broker.url(), queue, "m0");
        try (Client c = Client.to(broker.url()).stopped().open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            Mail.none(consumer);
            c.connection.start();
            assertEquals("m0", Mail.next(consumer));
        }
    }

    /** R-BRK-13: an ack for a message that the consumer does not have is an error to that client, nothing more. */
    @Test
    void ack_for_an_unknown_message() throws Exception {
        String queue = Mail.unique("unknown");
        Mail.send(broker.url(), queue, "m0", "m1");
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            var consumer = (org.apache.activemq.ActiveMQMessageConsumer) Client.consumer(s, queue);
            var m = (org.apache.activemq.command.ActiveMQMessage) Mail.must(consumer);
            var id = m.getMessageId().copy();
            id.setProducerSequenceId(4711);
            MessageAck ack = new MessageAck();
            ack.setAckType(MessageAck.STANDARD_ACK_TYPE);
            ack.setConsumerId(consumer.getConsumerId());
            ack.setDestination(Client.destination(queue));
            ack.setFirstMessageId(id);
            ack.setLastMessageId(id);
            ack.setMessageCount(1);
            assertThrows(JMSException.class, () -> c.connection.syncSendPacket(ack));
            m.acknowledge();
            assertEquals("m1", Mail.next(consumer));
        }
        assertEquals(List.of("m1#2!"), Mail.take(broker.url(), queue, 1));
    }

    /** What is larger than the broker's frames may be is an error for who sends it, not an endless reconnecting, with failover: too. */
    @ParameterizedTest
    @ValueSource(strings = {"%s", "failover:(%s)?initialReconnectDelay=10", "failover:(%s?wireFormat.maxFrameSizeEnabled=false)?initialReconnectDelay=10"})
    void larger_than_the_broker_takes(String form) throws Exception {
        try (BrokerProcess own = Broker.own("frame", null, "?wireFormat.maxFrameSize=100000")) {
            String queue = Mail.unique("frame");
            Client c = Client.open(String.format(form, own.url()));
            Session s = c.auto();
            Mail.send(s, queue, "m0");
            assertThrows(JMSException.class, () -> Mail.send(s, queue, "x".repeat(200_000)));
            Client.abandon(c.connection);
            Mail.send(own.url(), queue, "m1");
            assertEquals(List.of("m0#1", "m1#1"), Mail.take(own.url(), queue, 2));
        }
    }

    /** What is larger than a consumer's frames may be becomes a dead letter that says so; the consumer goes on with the next. */
    @ParameterizedTest
    @ValueSource(strings = {"%s?wireFormat.maxFrameSize=100000", "failover:(%s?wireFormat.maxFrameSize=100000)?initialReconnectDelay=10"})
    @Reference.Beyond("ActiveMQ writes it, and the client ends its connection, again and again")
    void larger_than_the_consumer_takes(String form) throws Exception {
        String queue = Mail.unique("frame");
        Mail.send(broker.url(), queue, "m0", "x".repeat(200_000), "m2");
        try (Client c = Client.open(String.format(form, broker.url()))) {
            MessageConsumer k = Client.consumer(c.auto(), queue);
            assertEquals("m0", Mail.next(k));
            assertEquals("m2", Mail.next(k));
            Mail.none(k);
        }
        Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
        assertTrue(dead.getStringProperty(Mail.CAUSE).contains("wireFormat.maxFrameSize"), dead.getStringProperty(Mail.CAUSE));
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** What a dead letter looks like (spec section 5.4), for every kind of message and every kind of property. */
class DeadLetterTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** The kinds of JMS message, with a body that shows all its types. */
    enum Kind {
        TEXT, EMPTY_TEXT, BYTES, MAP, OBJECT, STREAM, PLAIN;

        Message create(Session s) throws JMSException {
            switch (this) {
                case TEXT:
                    return s.createTextMessage("Grüße, κόσμε, 世界 \u0000 " + "x".repeat(5000));
                case EMPTY_TEXT:
                    return s.createTextMessage();
                case BYTES:
                    BytesMessage b = s.createBytesMessage();
                    b.writeBytes(bytes());
                    b.writeLong(Long.MIN_VALUE);
                    b.writeUTF("end");
                    return b;
                case MAP:
                    MapMessage m = s.createMapMessage();
                    m.setBoolean("boolean", true);
                    m.setByte("byte", (byte) -1);
                    m.setShort("short", Short.MIN_VALUE);
                    m.setChar("char", 'ß');
                    m.setInt("int", Integer.MAX_VALUE);
                    m.setLong("long", Long.MIN_VALUE);
                    m.setFloat("float", 1.5f);
                    m.setDouble("double", Math.PI);
                    m.setString("string", "x".repeat(3000));
                    m.setBytes("bytes", bytes());
                    m.setObject("list", new ArrayList<>(List.of("a", 2, 3L)));
                    m.setObject("map", Map.of("k", "v"));
                    m.setObject("null", null);
                    return m;
                case OBJECT:
                    return s.createObjectMessage(new ArrayList<>(List.of("a", 1, 2.5, "x".repeat(3000))));
                case STREAM:
                    StreamMessage t = s.createStreamMessage();
                    t.writeBoolean(true);
                    t.writeByte((byte) 7);
                    t.writeShort((short) 300);
                    t.writeChar('世');
                    t.writeInt(70_000);
                    t.writeLong(1L << 40);
                    t.writeFloat(-0.25f);
                    t.writeDouble(1e300);
                    t.writeString("y".repeat(3000));
                    t.writeBytes(bytes());
                    t.writeObject(null);
                    return t;
                default:
                    return s.createMessage();
            }
        }

        void check(Message got) throws JMSException {
            switch (this) {
                case TEXT:
                    assertEquals("Grüße, κόσμε, 世界 \u0000 " + "x".repeat(5000), ((TextMessage) got).getText());
                    break;
                case EMPTY_TEXT:
                    assertNull(((TextMessage) got).getText());
                    break;
                case BYTES:
                    BytesMessage b = (BytesMessage) got;
                    byte[] body = new byte[bytes().length];
                    assertEquals(body.length, b.readBytes(body));
                    assertArrayEquals(bytes(), body);
                    assertEquals(Long.MIN_VALUE, b.readLong());
                    assertEquals("end", b.readUTF());
                    assertEquals(body.length + 8 + 5, b.getBodyLength());
                    break;
                case MAP:
                    MapMessage m = (MapMessage) got;
                    assertTrue(m.getBoolean("boolean"));
                    assertEquals(-1, m.getByte("byte"));
                    assertEquals(Short.MIN_VALUE, m.getShort("short"));
                    assertEquals('ß', m.getChar("char"));
                    assertEquals(Integer.MAX_VALUE, m.getInt("int"));
                    assertEquals(Long.MIN_VALUE, m.getLong("long"));
                    assertEquals(1.5f, m.getFloat("float"));
                    assertEquals(Math.PI, m.getDouble("double"));
                    assertEquals("x".repeat(3000), m.getString("string"));
                    assertArrayEquals(bytes(), m.getBytes("bytes"));
                    assertEquals("[a, 2, 3]", String.valueOf(m.getObject("list"))); // 6.x has its own class for a nested string
                    assertEquals("{k=v}", String.valueOf(m.getObject("map")));
                    assertTrue(m.itemExists("null"));
                    assertNull(m.getObject("null"));
                    break;
                case OBJECT:
                    assertEquals(List.of("a", 1, 2.5, "x".repeat(3000)), ((ObjectMessage) got).getObject());
                    break;
                case STREAM:
                    StreamMessage t = (StreamMessage) got;
                    assertTrue(t.readBoolean());
                    assertEquals(7, t.readByte());
                    assertEquals(300, t.readShort());
                    assertEquals('世', t.readChar());
                    assertEquals(70_000, t.readInt());
                    assertEquals(1L << 40, t.readLong());
                    assertEquals(-0.25f, t.readFloat());
                    assertEquals(1e300, t.readDouble());
                    assertEquals("y".repeat(3000), t.readString());
                    assertArrayEquals(bytes(), (byte[]) t.readObject());
                    assertNull(t.readObject());
                    break;
                default:
                    assertEquals(ActiveMQMessage.class, got.getClass());
            }
        }

        private static byte[] bytes() {
            byte[] out = new byte[4096];
            for (int i = 0; i < out.length; i++) {
                out[i] = (byte) (i * i);
            }
            return out;
        }
    }

    static Stream<Object[]> kinds() {
        return Arrays.stream(Kind.values()).flatMap(k -> Stream.of(new Object[] {k, false}, new Object[] {k, true}));
    }

    /** Section 5.4, R-DLQ-03: body, headers, properties and id kept; cause, origin and old expiration noted. */
    @ParameterizedTest
    @MethodSource("kinds")
    void keeps_everything(Kind kind, boolean compressed) throws Exception {
        String queue = Mail.unique("kind." + kind);
        Message sent;
        try (Client c = Client.to(broker.url()).factory(f -> f.setUseCompression(compressed)).open()) {
            Session s = c.auto();
            sent = kind.create(s);
            sent.setStringProperty("origin", queue);
            setProperties(sent);
            sent.setJMSType("type");
            sent.setJMSCorrelationID("correlation-é");
            sent.setJMSReplyTo(Client.destination("topic://replies"));
            sent.setStringProperty("JMSXGroupID", "group");
            sent.setIntProperty("JMSXGroupSeq", 3);
            Client.producer(s, queue).send(sent, DeliveryMode.PERSISTENT, 7, 600_000);
        }
        poison(queue, kind);
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), queue, 1).get(0);
        // Before the body is read: getText() forgets that it was compressed.
        assertEquals(compressed && kind != Kind.PLAIN && kind != Kind.EMPTY_TEXT, dead.isCompressed(), "compressed");
        kind.check(dead);
        checkProperties(dead);
        assertEquals(sent.getJMSMessageID(), dead.getJMSMessageID());
        assertEquals(sent.getJMSTimestamp(), dead.getJMSTimestamp());
        assertEquals("type", dead.getJMSType());
        assertEquals("correlation-é", dead.getJMSCorrelationID());
        assertEquals(Client.destination("topic://replies"), dead.getJMSReplyTo());
        assertEquals(7, dead.getJMSPriority());
        assertEquals("group", dead.getStringProperty("JMSXGroupID"));
        assertEquals(3, dead.getIntProperty("JMSXGroupSeq"));
        assertEquals(Client.destination(Mail.DLQ), dead.getJMSDestination());
        assertEquals(Client.destination(queue), dead.getOriginalDestination());
        assertEquals(0, dead.getJMSExpiration());
        assertEquals(sent.getJMSExpiration(), dead.getObjectProperty("originalExpiration"));
        assertEquals(DeliveryMode.PERSISTENT, dead.getJMSDeliveryMode());
        assertFalse(dead.propertyExists("originalDeliveryMode"));
        assertFalse(dead.getJMSRedelivered());
        assertEquals(1, Mail.count(dead));
        assertTrue(dead.getStringProperty(Mail.CAUSE).startsWith("java.lang.Throwable: Delivery[2] exceeds "
            + "redelivery policy limit:RedeliveryPolicy {"), dead.getStringProperty(Mail.CAUSE));
    }

    private static void poison(String queue, Kind kind) throws JMSException {
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (int i = 1; i <= 2; i++) {
                Message m = Mail.must(consumer);
                assertEquals(i, Mail.count(m));
                kind.check(m);
                checkProperties(m);
                s.rollback();
            }
            assertNull(consumer.receiveNoWait());
        }
    }

    private static void setProperties(Message m) throws JMSException {
        m.setBooleanProperty("boolean", true);
        m.setByteProperty("byte", Byte.MIN_VALUE);
        m.setShortProperty("short", Short.MAX_VALUE);
        m.setIntProperty("int", -70_000);
        m.setLongProperty("long", Long.MAX_VALUE);
        m.setFloatProperty("float", 0.1f);
        m.setDoubleProperty("double", -1e-300);
        m.setStringProperty("string", "ünïcode " + "s".repeat(2000));
        m.setStringProperty("empty", "");
        m.setObjectProperty("list", new ArrayList<>(List.of("a", 1)));
        m.setObjectProperty("map", Map.of("k", 2L));
    }

    private static void checkProperties(Message m) throws JMSException {
        assertEquals(true, m.getObjectProperty("boolean"));
        assertEquals(Byte.MIN_VALUE, m.getObjectProperty("byte"));
        assertEquals(Short.MAX_VALUE, m.getObjectProperty("short"));
        assertEquals(-70_000, m.getObjectProperty("int"));
        assertEquals(Long.MAX_VALUE, m.getObjectProperty("long"));
        assertEquals(0.1f, m.getObjectProperty("float"));
        assertEquals(-1e-300, m.getObjectProperty("double"));
        assertEquals("ünïcode " + "s".repeat(2000), m.getObjectProperty("string"));
        assertEquals("", m.getObjectProperty("empty"));
        assertEquals("[a, 1]", String.valueOf(m.getObjectProperty("list"))); // 6.x has its own class for a nested string
        assertEquals("{k=2}", String.valueOf(m.getObjectProperty("map")));
    }

    /** R-EDGE-36: originalExpiration is there, and 0, on a message that never had one. */
    @Test
    void original_expiration_is_zero_without_one() throws Exception {
        String queue = Mail.unique("no-expiration");
        Mail.send(broker.url(), queue, "m");
        giveUp(queue, 1);
        assertEquals(0L, Mail.deadLetters(broker.url(), queue, 1).get(0).getObjectProperty("originalExpiration"));
    }

    /** Section 5.4: the time at which the broker took it is that of its death, and selectors know it. */
    @Test
    void broker_in_time_is_that_of_its_death() throws Exception {
        String queue = Mail.unique("in-time");
        Mail.send(broker.url(), queue, "m");
        Thread.sleep(300);
        giveUp(queue, 1);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Mail.awaitDepth(broker.url(), queue, 0);
            String of = "origin = '" + queue + "' AND JMSActiveMQBrokerInTime > ";
            List<Message> all = Mail.browse(s, Mail.DLQ, "origin = '" + queue + "'");
            assertEquals(1, all.size());
            ActiveMQMessage dead = (ActiveMQMessage) all.get(0);
            assertTrue(dead.getBrokerInTime() >= dead.getTimestamp() + 300, dead.getBrokerInTime() + ", sent " + dead.getTimestamp());
            assertEquals(1, Mail.browse(s, Mail.DLQ, of + (dead.getBrokerInTime() - 1)).size());
            assertEquals(0, Mail.browse(s, Mail.DLQ, of + dead.getBrokerInTime()).size());
        }
        Mail.deadLetters(broker.url(), queue, 1);
    }

    /** Receives n messages in one transaction of a client with limit 0 and rolls back. */
    private static void giveUp(String name, int n) throws JMSException {
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, name);
            for (int i = 0; i < n; i++) {
                Mail.must(consumer);
            }
            s.rollback();
        }
    }

    /** R-CLIENT-43: one POISON ack covers a whole batch; each message becomes a dead letter, in order. */
    @Test
    void a_batch_in_one_poison_ack() throws Exception {
        String queue = Mail.unique("batch");
        Mail.send(broker.url(), queue, "m0", "m1", "m2", "m3");
        giveUp(queue, 3);
        assertEquals(List.of("m0", "m1", "m2"), Mail.bodies(Mail.deadLetters(broker.url(), queue, 3)));
        assertEquals(List.of("m3#1"), Mail.take(broker.url(), queue, 1));
    }

    /** R-DLS-20, R-EDGE-12: the default strategy lets non-persistent poison go. */
    @Test
    void non_persistent_poison_is_discarded() throws Exception {
        String queue = Mail.unique("non-persistent");
        sendBrief(queue, DeliveryMode.NON_PERSISTENT, 0, "m0");
        giveUp(queue, 1);
        Mail.awaitDepth(broker.url(), queue, 0);
        Mail.deadLetters(broker.url(), queue, 0);
    }

    private static void sendBrief(String queue, int mode, long timeToLive, String... texts) throws JMSException {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (String text : texts) {
                p.send(Mail.text(s, queue, text), mode, 4, timeToLive);
            }
        }
    }

    /** R-BRK-20, 23: found expired by the broker when a consumer comes. */
    @Test
    void expired_in_the_queue() throws Exception {
        String queue = Mail.unique("expired");
        sendBrief(queue, DeliveryMode.PERSISTENT, 50, "m0");
        sendBrief(queue, DeliveryMode.PERSISTENT, 0, "m1");
        Thread.sleep(200);
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), queue, 1));
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), queue, 1).get(0);
        assertEquals("m0", Mail.body(dead));
        long expiration = dead.getLongProperty("originalExpiration");
        assertEquals(dead.getJMSTimestamp() + 50, expiration);
        assertEquals("java.lang.Throwable: Message Expired. Expiration:" + expiration, dead.getStringProperty(Mail.CAUSE));
        assertEquals(0, dead.getJMSExpiration());
        assertEquals(Client.destination(queue), dead.getOriginalDestination());
    }

    /** R-CLIENT-33: found expired by the client, which sends an EXPIRED ack. */
    @Test
    void expired_in_the_clients_buffer() throws Exception {
        String queue = Mail.unique("expired-client");
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            sendBrief(queue, DeliveryMode.PERSISTENT, 800, "m0");
            sendBrief(queue, DeliveryMode.PERSISTENT, 0, "m1");
            Thread.sleep(1200);
            assertEquals(List.of("m1#1"), Mail.drain(consumer, 1));
        }
        assertEquals(List.of("m0"), Mail.bodies(Mail.deadLetters(broker.url(), queue, 1)));
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** R-BRK-20: a message whose time ended while it waited for its redelivery is not delivered again. */
    @Test
    void expired_while_rolled_back() throws Exception {
        String queue = Mail.unique("expired-rollback");
        try (Client c = Client.to(broker.url()).policy(p -> p.setInitialRedeliveryDelay(2300)).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            sendBrief(queue, DeliveryMode.PERSISTENT, 2000, "m0");
            Mail.must(consumer);
            s.rollback();
            assertNull(consumer.receive(3000));
        }
        assertEquals(List.of("m0"), Mail.bodies(Mail.deadLetters(broker.url(), queue, 1)));
    }

    @Test
    void non_persistent_expired_is_discarded() throws Exception {
        String queue = Mail.unique("expired-np");
        sendBrief(queue, DeliveryMode.NON_PERSISTENT, 50, "m0");
        Thread.sleep(200);
        assertEquals(List.of(), Mail.take(broker.url(), queue, 0));
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** R-DUR-01: a durable subscription's poison names the topic as its origin. */
    @Test
    void of_a_durable_subscription() throws Exception {
        String topic = Mail.unique("topic");
        try (Client c = Client.to(broker.url()).limit(1).clientId(Mail.unique("client")).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = s.createDurableSubscriber(s.createTopic(topic), "sub");
            try (Client other = Client.open(broker.url())) {
                Session os = other.auto();
                MessageProducer p = Client.producer(os, "topic://" + topic);
                p.send(Mail.text(os, topic, "m0"));
                p.send(Mail.text(os, topic, "m1"));
            }
            Mail.must(consumer);
            s.rollback();
            assertEquals("m0#2!", Mail.label(Mail.must(consumer)));
            s.rollback();
            assertEquals(List.of("m1#1"), Mail.drain(consumer, 1));
            s.commit();
            consumer.close();
            s.unsubscribe("sub");
            s.commit();
        }
        ActiveMQMessage dead = (ActiveMQMessage) Mail.deadLetters(broker.url(), topic, 1).get(0);
        assertEquals("m0", Mail.body(dead));
        assertEquals(Client.destination("topic://" + topic), dead.getOriginalDestination());
    }

    /** R-DLS-23 (better): two subscriptions that give up the same message leave two dead letters. */
    @Test
    @Reference.Beyond("R-DLS-23, 25, R-EDGE-03")
    void of_two_durable_subscriptions() throws Exception {
        String topic = Mail.unique("topic");
        try (Client c = Client.to(broker.url()).limit(0).clientId(Mail.unique("client")).open()) {
            Session s = c.transacted();
            MessageConsumer a = s.createDurableSubscriber(s.createTopic(topic), "a");
            MessageConsumer b = s.createDurableSubscriber(s.createTopic(topic), "b");
            try (Client other = Client.open(broker.url())) {
                Session os = other.auto();
                Client.producer(os, "topic://" + topic).send(Mail.text(os, topic, "m0"));
            }
            Mail.must(a);
            Mail.must(b);
            s.rollback();
            a.close();
            b.close();
            s.unsubscribe("a");
            s.unsubscribe("b");
            s.commit();
        }
        assertEquals(List.of("m0", "m0"), Mail.bodies(Mail.deadLetters(broker.url(), topic, 2)));
    }

    /** Section 5.8 by hand: a client takes a dead letter and sends it home; it is a new message there. */
    @ParameterizedTest
    @EnumSource(value = Kind.class, names = {"TEXT", "MAP"})
    void sent_home_by_a_client(Kind kind) throws Exception {
        String queue = Mail.unique("home");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = kind.create(s);
            m.setStringProperty("origin", queue);
            Client.producer(s, queue).send(m);
        }
        giveUp(queue, 1);
        Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Client.producer(s, queue).send(dead);
            Message home = Mail.must(Client.consumer(s, queue));
            kind.check(home);
            assertEquals(1, Mail.count(home));
            assertFalse(home.getJMSRedelivered());
        }
    }
}

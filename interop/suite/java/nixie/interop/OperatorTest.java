package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What operators do with ActiveMQ's beans, over Jolokia, as clients see it (sections 5.8 and 8). */
@Reference.Beyond("the reference is started without its web console")
class OperatorTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String BROKER = "org.apache.activemq:type=Broker,brokerName=localhost";

    /** The reply to one request; its status must be the one given. */
    private static String jolokia(int status, String type, String mbean, String more) throws Exception {
        String body = String.format("{\"type\":\"%s\",\"mbean\":\"%s\",%s}", type, mbean, more);
        HttpRequest post = HttpRequest.newBuilder(URI.create(broker.process().admin() + "/api/jolokia/"))
            .header("Origin", "http://localhost").header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> reply = HTTP.send(post, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, reply.statusCode(), reply.body());
        assertTrue(reply.body().contains("\"status\":" + status), reply.body());
        return reply.body();
    }

    private static String queue(String name) {
        return BROKER + ",destinationType=Queue,destinationName=" + name;
    }

    private static String exec(String mbean, String operation, String arguments) throws Exception {
        return value(jolokia(200, "exec", mbean, "\"operation\":\"" + operation + "\",\"arguments\":[" + arguments + "]"));
    }

    private static String read(String mbean, String attribute) throws Exception {
        return value(jolokia(200, "read", mbean, "\"attribute\":\"" + attribute + "\""));
    }

    /** A value that is no list and no object. */
    private static String value(String reply) {
        Matcher m = Pattern.compile("\"value\":(\"[^\"]*\"|[^,}\\[{]+)").matcher(reply);
        return m.find() ? m.group(1) : reply;
    }

    /** Makes dead letters of messages, with a client that gives up at once. */
    private static void fail(String queue, String... texts) throws Exception {
        Mail.send(broker.url(), queue, texts);
        try (Client c = Client.to(broker.url()).limit(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (String text : texts) {
                assertEquals(text, Mail.body(Mail.must(consumer)));
                s.rollback();
            }
        }
    }

    /** C18 by the operations that scripts call: home, with a fresh count, and refused where nothing is to be retried. */
    @Test
    void retry_messages_brings_them_home_with_a_fresh_count() throws Exception {
        String orders = Mail.unique("OP.RETRY");
        fail(orders, "x", "y", "z");
        Mail.awaitDepth(broker.url(), Mail.DLQ, 3);
        assertEquals("true", read(queue(Mail.DLQ), "DLQ"));
        String id = Mail.browse(broker.url(), Mail.DLQ).get(2).getJMSMessageID();
        assertEquals("true", exec(queue(Mail.DLQ), "retryMessage", "\"" + id + "\""));
        assertEquals("2", exec(queue(Mail.DLQ), "retryMessages()", ""));
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), orders);
            for (String text : new String[] {"z", "x", "y"}) {
                Message m = Mail.must(consumer);
                assertEquals(text + "#1", Mail.label(m));
                assertFalse(m.getJMSRedelivered());
                assertNull(m.getStringProperty(Mail.CAUSE));
            }
        }
        assertTrue(jolokia(500, "exec", queue(orders), "\"operation\":\"retryMessages\"").contains("only possible on Dead Letter Queues"));
        assertEquals("0", read(queue(Mail.DLQ), "QueueSize"));
    }

    /** Two operators who retry all at the same time: each message comes home once, and the answers add up. */
    @Test
    void two_who_retry_at_once_double_nothing() throws Exception {
        String orders = Mail.unique("OP.TWICE");
        String aside = Mail.unique("OP.TWICE.DLQ");
        String[] texts = Mail.numbered(60);
        fail(orders, texts);
        Mail.awaitDepth(broker.url(), Mail.DLQ, texts.length);
        exec(queue(Mail.DLQ), "moveMatchingMessagesTo(java.lang.String,java.lang.String)", "\"JMSDestination = 'queue://" + orders + "'\",\"" + aside + "\"");
        List<CompletableFuture<Integer>> both = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            both.add(CompletableFuture.supplyAsync(() -> {
                try {
                    String reply = jolokia(200, "exec", queue(aside), "\"operation\":\"retryMessages\"");
                    return Integer.parseInt(value(reply));
                } catch (AssertionError late) {
                    return 0; // nothing is left, so that it is no dead letter queue
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }));
        }
        int moved = 0;
        for (CompletableFuture<Integer> one : both) {
            moved += one.get(20, TimeUnit.SECONDS);
        }
        assertEquals(texts.length, moved);
        assertEquals(Stream.of(texts).map(t -> t + "#1").collect(Collectors.toList()), Mail.take(broker.url(), orders, texts.length));
        assertEquals("0", read(queue(aside), "QueueSize"));
    }

    /** A paused queue gives nothing to who receives, with a window or without; what is had can be acknowledged. */
    @Test
    void a_paused_queue_gives_nothing_until_it_is_resumed() throws Exception {
        for (int window : new int[] {0, 1}) {
            String name = Mail.unique("OP.PAUSE");
            Mail.send(broker.url(), name, "a", "b", "c");
            try (Client c = Client.to(broker.url()).prefetch(window).open()) {
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, name);
                List<String> got = new ArrayList<>();
                got.add(Mail.label(Mail.must(consumer)));
                exec(queue(name), "pause", "");
                assertEquals("true", read(queue(name), "Paused"));
                s.commit();
                for (Message m = consumer.receive(700); m != null; m = consumer.receive(700)) { // what was on its way before
                    got.add(Mail.label(m));
                    s.commit();
                }
                assertTrue(got.size() <= 1 + 2 * window, got.toString());
                Mail.send(broker.url(), name, "d");
                assertNull(consumer.receive(300));
                exec(queue(name), "resume", "");
                while (got.size() < 4) {
                    got.add(Mail.label(Mail.must(consumer)));
                    s.commit();
                }
                assertEquals(List.of("a#1", "b#1", "c#1", "d#1"), got);
            }
        }
    }

    /** A subscriber that is gone is removed with what waits for it; who subscribes again gets what comes then. */
    @Test
    void a_durable_subscription_is_destroyed_by_hand() throws Exception {
        String news = Mail.unique("OP.NEWS");
        String id = Mail.unique("reader");
        for (int round = 1; round <= 2; round++) {
            Connection c = new ActiveMQConnectionFactory(broker.url()).createConnection();
            try {
                c.setClientID(id);
                c.start();
                Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Topic topic = s.createTopic(news);
                MessageConsumer consumer = s.createDurableSubscriber(topic, "daily");
                if (round == 1) {
                    String said = jolokia(409, "exec", BROKER, "\"operation\":\"destroyDurableSubscriber\",\"arguments\":[\"" + id + "\",\"daily\"]");
                    assertTrue(said.contains("in use"), said);
                }
                s.createProducer(topic).send(s.createTextMessage("seen " + round));
                assertEquals("seen " + round, Mail.body(Mail.must(consumer)));
                consumer.close();
                s.createProducer(topic).send(s.createTextMessage("missed " + round));
            } finally {
                c.close();
            }
            String bean = BROKER + ",destinationType=Topic,destinationName=" + news + ",endpoint=Consumer,clientId=" + id + ",consumerId=Durable(" + id + "_daily)";
            assertEquals("1", read(bean, "PendingQueueSize"));
            exec(BROKER, "destroyDurableSubscriber", "\"" + id + "\",\"daily\"");
            jolokia(404, "read", bean, "\"attribute\":\"PendingQueueSize\"");
        }
    }

    /** A text message that an operator sends is one like any other. */
    @Test
    void send_text_message_with_headers() throws Exception {
        String name = Mail.unique("OP.SEND");
        exec(BROKER, "addQueue", "\"" + name + "\"");
        String sent = exec(queue(name), "sendTextMessage(java.util.Map,java.lang.String)",
            "{\"JMSCorrelationID\":\"c1\",\"JMSPriority\":7,\"JMSDeliveryMode\":\"NON_PERSISTENT\",\"n\":42,\"who\":\"me\",\"yes\":true},\"hello\"");
        try (Client c = Client.open(broker.url())) {
            TextMessage m = (TextMessage) Mail.must(Client.consumer(c.auto(), name));
            assertEquals("hello", m.getText());
            assertEquals(sent, "\"" + m.getJMSMessageID() + "\"");
            assertEquals("c1", m.getJMSCorrelationID());
            assertEquals(7, m.getJMSPriority());
            assertEquals(DeliveryMode.NON_PERSISTENT, m.getJMSDeliveryMode());
            assertEquals(42, m.getIntProperty("n"));
            assertEquals("me", m.getStringProperty("who"));
            assertTrue(m.getBooleanProperty("yes"));
        }
        exec(BROKER, "removeQueue", "\"" + name + "\"");
    }

    /** Figures by GET, for names with signs that paths and bean names have rules for. */
    @Test
    void odd_names_are_read() throws Exception {
        for (String name : new String[] {"a/b", "a b", "x:y", "ä.ö", "q?z=1"}) {
            String odd = Mail.unique("OP.ODD.") + "." + name.replace("?z=1", "");
            Mail.send(broker.url(), odd, "m");
            String escaped = URLEncoder.encode(odd.replace("!", "!!").replace("/", "!/").replace(":", "_"), StandardCharsets.UTF_8).replace("+", "%20").replace("%21", "!").replace("%2F", "/");
            HttpRequest get = HttpRequest.newBuilder(URI.create(broker.process().admin() + "/api/jolokia/read/" + queue("") + escaped + "/QueueSize")).build();
            String body = HTTP.send(get, HttpResponse.BodyHandlers.ofString()).body();
            assertEquals("1", value(body), body);
        }
    }
}

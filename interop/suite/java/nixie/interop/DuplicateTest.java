package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** C21: a send that is repeated because its reply was lost is delivered once and is no dead letter. */
class DuplicateTest {
    private static final String QUICK = "?initialReconnectDelay=5&maxReconnectDelay=50&useExponentialBackOff=false";

    @RegisterExtension static final Broker broker = Broker.with("C21-activemq.xml");

    @ParameterizedTest
    @ValueSource(strings = {"CACHE.Q", "NOCACHE.Q"})
    void C21_1_consumed_before_the_resend(String stem) throws Exception {
        String queue = Mail.unique(stem);
        try (Client c = sender(broker.url())) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            ActiveMQMessage m = sendOnce(s, queue, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            c.connection.syncSendPacket(m);
            Mail.none(consumer);
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"CACHE.Q", "NOCACHE.Q"})
    void C21_2_still_there_at_the_resend(String stem) throws Exception {
        String queue = Mail.unique(stem);
        try (Client c = sender(broker.url())) {
            Session s = c.auto();
            ActiveMQMessage m = sendOnce(s, queue, "m0");
            c.connection.syncSendPacket(m);
            assertEquals(List.of("m0#1"), Mail.drain(Client.consumer(s, queue), 1));
        }
        Mail.deadLetters(broker.url(), queue, 0);
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void C21_3_across_a_restart(boolean consumed) throws Exception {
        String queue = Mail.unique("CACHE.Q");
        try (Client c = sender("failover:(" + broker.process().url() + ")" + QUICK)) {
            Session s = c.auto();
            ActiveMQMessage m = sendOnce(s, queue, "m0");
            if (consumed) {
                assertEquals(List.of("m0#1"), Mail.take(broker.url(), queue, 1));
            }
            broker.process().restart();
            c.connection.syncSendPacket(m);
            assertEquals(consumed ? List.of() : List.of("m0#1"), Mail.take(broker.url(), queue, consumed ? 0 : 1));
        }
        Mail.deadLetters(broker.url(), queue, 0);
    }

    @Test
    void C21_4_a_hundred_lost_replies() throws Exception {
        String queue = Mail.unique("CACHE.Q");
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client c = Client.open("failover:(" + proxy.url() + ")" + QUICK);
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 100; i++) {
                proxy.loseNextReply();
                p.send(Mail.text(s, queue, "m" + i));
                assertTrue(proxy.awaitLost(i + 1, Mail.SOON), "reply " + i + " was not lost");
            }
            c.close();
        }
        Set<String> distinct = new HashSet<>();
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            for (int i = 0; i < 100; i++) {
                distinct.add(Mail.next(consumer));
            }
            Mail.none(consumer);
        }
        assertEquals(new HashSet<>(Arrays.asList(Mail.numbered(100))), distinct);
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** C21 point 2: the duplicates that were dropped are counted in /metrics. */
    @Test
    @Reference.Beyond("C21: ActiveMQ counts in a JMX bean")
    void C21_dropped_duplicates_are_counted() throws Exception {
        String queue = Mail.unique("CACHE.Q");
        double before = duplicates();
        try (Client c = sender(broker.url())) {
            ActiveMQMessage m = sendOnce(c.auto(), queue, "m0");
            c.connection.syncSendPacket(m);
            c.connection.syncSendPacket(m);
        }
        assertEquals(before + 2, duplicates());
    }

    /** The sum of all samples whose metric has "duplicate" in its name. */
    private static double duplicates() throws Exception {
        HttpRequest get = HttpRequest.newBuilder(URI.create(broker.process().admin() + "/metrics")).build();
        String body = HttpClient.newHttpClient().send(get, HttpResponse.BodyHandlers.ofString()).body();
        List<String> lines = body.lines()
            .filter(l -> !l.startsWith("#") && l.split("[ {]")[0].contains("duplicate")).toList();
        assertTrue(!lines.isEmpty(), "no metric named *duplicate*");
        return lines.stream().mapToDouble(l -> Double.parseDouble(l.substring(l.lastIndexOf(' ') + 1))).sum();
    }

    /** A client whose producers put the ids into the caller's message, so that it can be sent again as it was. */
    private static Client sender(String url) throws Exception {
        return Client.to(url).factory(f -> f.setCopyMessageOnSend(false)).open();
    }

    private static ActiveMQMessage sendOnce(Session s, String queue, String text) throws Exception {
        Message m = Mail.text(s, queue, text);
        Client.producer(s, queue).send(m);
        return (ActiveMQMessage) m;
    }
}

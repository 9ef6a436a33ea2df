package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a topic has kept for consumers that come later. */
class RetroactiveTest {
    @RegisterExtension static final Broker broker = Broker.with("retroactive.xml");

    @ParameterizedTest
    @CsvSource({
        "three,?consumer.retroactive=true,'m2#1,m3#1,m4#1'", "three,'',''",
        "last,'','m4#1'",
        "minute,?consumer.retroactive=true,'m0#1,m1#1,m2#1,m3#1,m4#1'",
        "none,?consumer.retroactive=true,''"})
    void what_was_kept(String stem, String options, String want) throws Exception {
        String topic = "topic://" + Mail.unique(stem);
        Mail.send(broker.url(), topic, Mail.numbered(5));
        List<String> wanted = want.isEmpty() ? List.of() : List.of(want.split(","));
        try (Client c = Client.open(broker.url())) {
            var consumer = Client.consumer(c.auto(), topic + options);
            assertEquals(wanted, Mail.drain(consumer, wanted.size()));
            Mail.send(broker.url(), topic, "then");
            assertEquals("then#1", Mail.label(Mail.must(consumer)));
        }
    }

    /** jms.useRetroactiveConsumer asks for it for all consumers of a connection. */
    @Test
    void by_the_connection() throws Exception {
        String topic = "topic://" + Mail.unique("three");
        Mail.send(broker.url(), topic, Mail.numbered(5));
        try (Client c = Client.open(broker.url() + "?jms.useRetroactiveConsumer=true")) {
            assertEquals(List.of("m2#1", "m3#1", "m4#1"), Mail.drain(Client.consumer(c.auto(), topic), 3));
        }
    }

    /** A durable subscription that is new is given it for good. */
    @Test
    void a_durable_subscription() throws Exception {
        String topic = "topic://" + Mail.unique("three");
        Mail.send(broker.url(), topic, Mail.numbered(5));
        try (Client c = Client.to(broker.url()).clientId(Mail.unique("client")).open()) {
            var s = c.auto();
            var asked = (javax.jms.Topic) Client.destination(topic + "?consumer.retroactive=true");
            s.createDurableSubscriber(asked, "sub").close();
            Mail.send(broker.url(), topic, "then");
            var sub = s.createDurableSubscriber(asked, "sub");
            assertEquals(List.of("m2", "m3", "m4", "then"), List.of(Mail.next(sub), Mail.next(sub), Mail.next(sub), Mail.next(sub)));
            sub.close();
            s.unsubscribe("sub");
        }
    }

    @Test
    void with_a_selector() throws Exception {
        String topic = "topic://" + Mail.unique("three");
        try (Client c = Client.open(broker.url())) {
            var s = c.auto();
            var p = Client.producer(s, topic);
            for (String text : List.of("a", "b", "c")) {
                var m = s.createTextMessage(text);
                m.setStringProperty("letter", text);
                p.send(m);
            }
            var consumer = s.createConsumer(Client.destination(topic + "?consumer.retroactive=true"), "letter = 'b'");
            assertEquals(List.of("b#1"), Mail.drain(consumer, 1));
        }
    }
}

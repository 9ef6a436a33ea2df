package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.InvalidSelectorException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Selectors on consumers: the grammar, headers, and that the unselected stays for others. */
class SelectorTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** Message m0 to m5 against each selector; the wanted numbers in order. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "n = 3|3",
        "n <> 3|0,1,2,4,5",
        "n > 3 OR n < 1|0,4,5",
        "n BETWEEN 2 AND 4|2,3,4",
        "n NOT BETWEEN 2 AND 4|0,1,5",
        "color IN ('red', 'blue')|0,2,3,5",
        "color NOT IN ('red', 'blue')|1,4",
        "color LIKE 'r%'|0,3",
        "color LIKE '_lue'|2,5",
        "color NOT LIKE '%e%'|",
        "only IS NULL|0,1,2,3,4",
        "only IS NOT NULL|5",
        "n * 2 + 1 = 7|3",
        "n / 2 > 1.9|4,5",
        "-n = -2|2",
        "even|0,2,4",
        "even = TRUE AND NOT (n = 2)|0,4",
        "even = FALSE|1,3,5",
        "weight >= 2.5|5",
        "JMSPriority > 7|4,5",
        "JMSType = 't3'|3",
        "JMSCorrelationID = 'c1'|1",
        "JMSDeliveryMode = 'NON_PERSISTENT'|1,3,5",
        "quoted = 'it''s'|0,1,2,3,4,5",
        "under LIKE 'a\\_%' ESCAPE '\\'|0,2,4",
        "missing = 1|",
        "missing <> 1|",
        "color = 'red' and (n = 0 or n = 4)|0",
    })
    void grammar(String selector, String want) throws Exception {
        String queue = Mail.unique("grammar");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            String[] colors = {"red", "green", "blue"};
            for (int i = 0; i < 6; i++) {
                Message m = Mail.text(s, queue, "" + i);
                m.setIntProperty("n", i);
                m.setStringProperty("color", colors[i % 3]);
                m.setBooleanProperty("even", i % 2 == 0);
                m.setDoubleProperty("weight", i / 2.0);
                m.setStringProperty("quoted", "it's");
                m.setStringProperty("under", i % 2 == 0 ? "a_b" : "acb");
                if (i == 5) {
                    m.setLongProperty("only", 5);
                }
                m.setJMSType("t" + i);
                m.setJMSCorrelationID("c" + i);
                p.send(m, i % 2 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT, 4 + i, 0);
            }
            List<String> wanted = want == null ? List.of() : List.of(want.split(","));
            assertEquals(wanted, inOrder(Mail.bodies(Mail.browse(s, queue, selector))), "browsed");
            MessageConsumer consumer = s.createConsumer(Client.destination(queue), selector);
            List<String> got = new ArrayList<>();
            for (int i = 0; i < wanted.size(); i++) {
                got.add(Mail.next(consumer));
            }
            assertEquals(wanted, inOrder(got), "consumed");
            consumer.close();
            assertEquals(6 - got.size(), Mail.browse(s, queue, null).size(), "left");
        }
    }

    /** ActiveMQ does not keep the order between persistent and other messages; NixieMQ does. */
    private static List<String> inOrder(List<String> got) {
        return Reference.active() ? got.stream().sorted().toList() : got;
    }

    @ParameterizedTest
    @ValueSource(strings = {"n =", "= 3", "n = 3 AND", "(n = 3", "n LIKE 3", "n IN ()", "color = 'open"})
    void invalid(String selector) throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            assertThrows(InvalidSelectorException.class,
                () -> s.createConsumer(Client.destination(Mail.unique("invalid")), selector));
            // The connection is as good as before.
            String queue = Mail.unique("after");
            Mail.send(s, queue, "m0");
            assertEquals("m0", Mail.next(Client.consumer(s, queue)));
        }
    }

    /** Two selective consumers share a queue; each gets its own, whatever stands in front. */
    @Test
    void two_consumers_of_one_queue() throws Exception {
        String queue = Mail.unique("shared");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer odd = s.createConsumer(Client.destination(queue), "odd = TRUE");
            MessageConsumer even = s.createConsumer(Client.destination(queue), "odd = FALSE");
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 20; i++) {
                Message m = s.createTextMessage("m" + i);
                m.setBooleanProperty("odd", i % 2 == 1);
                p.send(m);
            }
            for (int i = 0; i < 20; i++) {
                assertEquals("m" + i, Mail.next(i % 2 == 1 ? odd : even));
            }
        }
        Mail.awaitDepth(broker.url(), queue, 0);
    }

    /** A match that lies behind a thousand others is found. */
    @Test
    @Reference.Beyond("maxPageSize: ActiveMQ looks at the first 200 only")
    void behind_a_thousand() throws Exception {
        String queue = Mail.unique("behind");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 1001; i++) {
                Message m = s.createTextMessage("m" + i);
                m.setIntProperty("n", i);
                p.send(m);
            }
            s.commit();
            assertEquals("m1000", Mail.next(s.createConsumer(Client.destination(queue), "n = 1000")));
            s.commit();
        }
    }

    /** R-CNT-09: what a selective consumer held goes ahead of the rest, also what it had not read. */
    @Test
    void rollback_and_close() throws Exception {
        String queue = Mail.unique("selective-rollback");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 4; i++) {
                Message m = s.createTextMessage("m" + i);
                m.setIntProperty("n", i);
                p.send(m);
            }
        }
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            assertEquals("m2", Mail.next(s.createConsumer(Client.destination(queue), "n >= 2")));
        }
        assertEquals(List.of("m2#2!", "m3#1", "m0#1", "m1#1"), Mail.take(broker.url(), queue, 4));
    }
}

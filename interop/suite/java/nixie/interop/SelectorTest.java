package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
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

    /** What ActiveMQ adds to JMS: each of these selects the one message there is. */
    @ParameterizedTest
    @ValueSource(strings = {
        // all header fields
        "JMSMessageID LIKE 'ID:%'", "JMSDestination LIKE 'queue://extended%'", "JMSReplyTo = 'queue://replies'", "JMSTimestamp > 0",
        "JMSExpiration = 0", "JMSRedelivered = FALSE", "NOT JMSRedelivered", "JMSXDeliveryCount = 1", "JMSXGroupID = 'g'", "JMSXGroupSeq = 7",
        "JMSXUserID IS NULL", "JMSXProducerTXID IS NULL", "JMSActiveMQBrokerInTime > 0", "JMSActiveMQBrokerOutTime = 0",
        "JMSXGroupFirstForConsumer = FALSE", "JMSXAppID = 'app'", "dlqDeliveryFailureCause IS NULL",
        // properties that convert
        "convert_string_expressions:digits = 3", "convert_string_expressions:digits > 2", "convert_string_expressions:n = '1'",
        // operators
        "n % 2 = 1", "t + 'q' = 'xyzq'", "n /* a comment */ = 1", "n = 0x1", "half = 15E-1", "n = 1L", "t LIKE 'xy!z' ESCAPE '!' OR n = 1",
        // functions
        "REGEX('^x.z$', t)", "REGEX('1', n)", "NOT REGEX('q', t)", "REPLACE(t, '(x)(y)', '$2$1') = 'yxz'", "INLIST(MAKELIST('3', '4'), digits)",
        "INLIST(SPLIT('a3b', '[ab]'), digits)", "INLIST(SPLIT('a,b,c', ',', 2), 'b,c')", "NOT INLIST(MAKELIST('x'), missing)", "INLIST(MAKELIST(n, 2), 1)",
    })
    void extensions(String selector) throws Exception {
        String queue = Mail.unique("extended");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = Mail.text(s, queue, "m0");
            m.setIntProperty("n", 1);
            m.setStringProperty("digits", "3");
            m.setStringProperty("t", "xyz");
            m.setDoubleProperty("half", 1.5);
            m.setStringProperty("JMSXAppID", "app");
            m.setStringProperty("JMSXGroupID", "g");
            m.setIntProperty("JMSXGroupSeq", 7);
            m.setJMSReplyTo(s.createQueue("replies"));
            Client.producer(s, queue).send(m);
            MessageConsumer other = s.createConsumer(Client.destination(queue), "NOT (" + plain(selector) + ")");
            Mail.none(other);
            other.close();
            assertEquals("m0", Mail.next(s.createConsumer(Client.destination(queue), selector)));
        }
    }

    /** What a message that this selector wants is told by another that it does not want; prefixes stand first of all. */
    private static String plain(String selector) {
        return selector.contains(":") && !selector.contains("'ID:") && !selector.contains("'queue:") ? "n = 1" : selector;
    }

    /**
     * Clients check a selector by themselves, and have no XPath of their own: without Xalan on the class path they refuse it,
     * whatever the broker would do.
     */
    @Test
    void no_xpath_in_clients() throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            assertThrows(InvalidSelectorException.class, () -> s.createConsumer(Client.destination(Mail.unique("xpath")), "XPATH '//a'"));
        }
    }

    /** Selectors that find nothing among very many messages do not keep those from others who want them. */
    @Test
    void wide_scans_starve_nobody() throws Exception {
        String wide = Mail.unique("wide");
        String other = Mail.unique("other");
        int n = 5000;
        try (Client c = Client.to(broker.url()).factory(f -> f.setUseAsyncSend(true)).open(); Client scanning = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, wide);
            for (int i = 0; i < n; i++) {
                Message m = s.createTextMessage("m" + i);
                m.setIntProperty("n", i);
                p.send(m);
            }
            s.commit();
            for (int i = 0; i < 20; i++) {
                scanning.auto().createConsumer(Client.destination(wide), "n < 0 OR nothing LIKE '%a%b%" + i + "'").setMessageListener(m -> { });
            }
            MessageConsumer taker = s.createConsumer(Client.destination(wide));
            for (int i = 0; i < n; i++) {
                Message m = Mail.must(taker);
                assertEquals("m" + i, Mail.body(m), "beside 20 consumers that find nothing");
                if (i % 100 == 0) { // a queue of its own goes on beside it
                    Mail.send(s, other, "o" + i);
                    s.commit();
                }
            }
            s.commit();
            MessageConsumer others = Client.consumer(s, other);
            for (int i = 0; i < n; i += 100) {
                assertEquals("o" + i, Mail.next(others));
            }
            s.commit();
        }
        Mail.awaitDepth(broker.url(), wide, 0);
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

    /**
     * Replies for JMSCorrelationID on one queue, on which 25,000 stale ones lie: each is found, whether it was
     * there before its consumer or comes after, by a listener's window as by receiveNoWait without one.
     */
    @Test
    @Reference.Beyond("maxPageSize: ActiveMQ looks at the first 200 only")
    void replies_behind_stale_ones() throws Exception {
        String queue = Mail.unique("replies");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            for (int i = 0; i < 25_000; i++) {
                Message m = s.createTextMessage("stale");
                m.setJMSCorrelationID("old" + i);
                p.send(m);
                if (i % 5000 == 4999) {
                    s.commit();
                }
            }
        }
        try (Client c = Client.open(broker.url()); Client server = Client.open(broker.url())) {
            Session replies = server.auto();
            MessageProducer p = Client.producer(replies, queue);
            Session s = c.auto();
            for (int i = 0; i < 20; i++) {
                boolean before = i % 2 == 0;
                Message m = replies.createTextMessage("r" + i);
                m.setJMSCorrelationID("id" + i);
                if (before) {
                    p.send(m);
                }
                MessageConsumer consumer = s.createConsumer(Client.destination(queue), "JMSCorrelationID = 'id" + i + "'");
                if (!before) {
                    p.send(m);
                }
                assertEquals("r" + i, Mail.next(consumer));
                consumer.close();
            }
            Message last = replies.createTextMessage("last");
            last.setJMSCorrelationID("last");
            p.send(last);
            MessageConsumer pull = s.createConsumer(Client.destination(queue + "?consumer.prefetchSize=0"), "JMSCorrelationID = 'last'");
            assertEquals("last", Mail.body(pull.receiveNoWait()));
            assertNull(pull.receiveNoWait());
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

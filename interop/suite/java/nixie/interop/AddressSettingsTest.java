package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A broker.xml of Artemis with the real client: C01, C02, C05, and what dead letters look like. */
@Reference.Beyond("R-HQ")
class AddressSettingsTest {
    @RegisterExtension static final Broker broker = Broker.with("broker.xml");

    /** The dead letters that came from an address. */
    private static List<String> dead(String address) throws Exception {
        try (Client c = Client.open(broker.url())) {
            return Mail.bodies(Mail.browse(c.auto(), "DLQ", "_AMQ_ORIG_ADDRESS = '" + address + "'"));
        }
    }

    /** C01: limits count deliveries; -1 and 0 have no end. The client has its own defaults. */
    @ParameterizedTest
    @CsvSource({"LIMIT.THREE, 100, 3", "LIMIT.ONE, 100, 1", "LIMIT.ENDLESS, 50, 51", "LIMIT.ZERO, 12, 13"})
    void limits(String queue, int fail, int deliveries) throws Exception {
        Mail.send(broker.url(), queue, "m");
        int n = 0;
        while (true) {
            try (Client c = Client.to(broker.url()).prefetch(1).open()) {
                Session s = c.transacted();
                Message m = new Operator(broker.process()).next(Client.consumer(s, queue), queue);
                if (m == null) {
                    break;
                }
                n++;
                assertEquals("m#" + n + (n > 1 ? "!" : ""), Mail.label(m));
                if (n > fail) {
                    s.commit();
                } else {
                    s.close();
                }
            }
        }
        assertEquals(deliveries, n);
        assertEquals(fail == 100 ? List.of("m") : List.of(), dead(queue));
    }

    /** C02: what kills its consumers is parked, and what only waited behind it is not. */
    @Test
    void poison_that_kills_its_consumer() throws Exception {
        assertEquals(List.of("G1", "G2", "G3", "P#1", "P#2!", "P#3!", "P#4!", "P#5!"), untilParked(broker, "CRASH.Q"));
        assertEquals(List.of("P"), dead("CRASH.Q"));
    }

    /** Sends P, which cuts the connection of whoever gets it, and G1 to G3; what is delivered until nothing comes any more, sorted. */
    static List<String> untilParked(Broker broker, String queue) throws Exception {
        Mail.send(broker.url(), queue, "P", "G1", "G2", "G3");
        List<String> seen = new ArrayList<>();
        int connections = 0;
        for (; connections < 12; connections++) {
            try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
                Client c = Client.to(proxy.url()).limit(-1).prefetch(1).open();
                Session s = c.transacted();
                MessageConsumer consumer = Client.consumer(s, queue);
                Operator operator = new Operator(broker.process());
                Message m = operator.next(consumer, queue);
                for (; m != null && !Mail.body(m).equals("P"); m = operator.next(consumer, queue)) {
                    seen.add(Mail.body(m));
                    s.commit();
                }
                if (m == null) {
                    c.close();
                    break;
                }
                seen.add(Mail.label(m));
                proxy.cut();
                Client.abandon(c.connection);
            }
        }
        assertTrue(connections <= 7, connections + " connections");
        Collections.sort(seen);
        return seen;
    }

    /** C05: the delay holds, however a consumer went. */
    @Test
    void delay_holds_when_consumers_come_and_go() throws Exception {
        BrokerRedeliveryTest.churn(broker, "CHURN.Q", 3, 4000);
        assertEquals(List.of(), dead("CHURN.Q"));
    }

    /** Section 7: the properties of expired messages, with their types, for JMS and for selectors. */
    @Test
    void expired_messages() throws Exception {
        String queue = Mail.unique("late");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            long sent = System.currentTimeMillis();
            for (int mode : new int[] {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT}) {
                Client.producer(s, queue).send(Mail.text(s, queue, "mode " + mode), mode, 4, 300);
            }
            MessageConsumer consumer = s.createConsumer(Client.destination("ExpiryQueue"),
                "_AMQ_ORIG_ADDRESS = '" + queue + "' AND _AMQ_ORIG_ROUTING_TYPE = 1");
            for (int mode : new int[] {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT}) {
                Message m = Mail.must(consumer);
                assertEquals("mode " + mode + "#1", Mail.label(m));
                assertEquals(queue, m.getStringProperty("_AMQ_ORIG_QUEUE"));
                assertEquals((byte) 1, m.getByteProperty("_AMQ_ORIG_ROUTING_TYPE"));
                assertTrue(m.getLongProperty("_AMQ_ORIG_MESSAGE_ID") > 0);
                assertTrue(m.getLongProperty("_AMQ_ACTUAL_EXPIRY") >= sent + 300);
                assertEquals(0, m.getJMSExpiration());
                assertEquals(Client.destination("ExpiryQueue"), m.getJMSDestination());
            }
        }
    }

    /** R-HQ-109: what nobody hears. */
    @Test
    void unrouted_messages() throws Exception {
        Mail.send(broker.url(), "topic://unheard", "m");
        assertEquals(List.of("m"), dead("unheard"));
        try (Client c = Client.open(broker.url())) {
            Message m = take(c, "_AMQ_ORIG_ADDRESS = 'unheard'");
            assertNotNull(m);
            assertFalse(m.propertyExists("_AMQ_ORIG_QUEUE"));
        }
    }

    private static Message take(Client c, String selector) throws Exception {
        return c.auto().createConsumer(Client.destination("DLQ"), selector).receive(Mail.SOON);
    }
}

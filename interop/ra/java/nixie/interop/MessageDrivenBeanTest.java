package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.jms.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Message-driven beans on ActiveMQ's resource adapter (R-CLIENT-4A to 4C, R-URI-15). */
@Timeout(180)
class MessageDrivenBeanTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private final List<String> seen = Collections.synchronizedList(new ArrayList<>());

    private void await(int n) throws InterruptedException {
        for (long end = System.nanoTime() + Mail.SOON * 1_000_000L; seen.size() < n && System.nanoTime() < end; ) {
            Thread.sleep(10);
        }
    }

    private List<String> of(String body) {
        return seen.stream().filter(s -> s.startsWith(body + "#")).toList();
    }

    /** Every message once, by several instances, in transactions of their own or acknowledged one by one. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void every_message_once(boolean transacted) throws Exception {
        String queue = Mail.unique("bean");
        Mail.send(broker.url(), queue, Mail.numbered(60));
        try (Container c = new Container(broker.url(), queue, 3, 6, transacted, m -> seen.add(Mail.body(m)))) {
            await(60);
            Mail.awaitDepth(broker.url(), queue, 0);
        }
        assertEquals(new HashSet<>(List.of(Mail.numbered(60))), new HashSet<>(seen));
        assertEquals(60, seen.size());
        Mail.deadLetters(broker.url(), queue, 0);
    }

    /** R-CLIENT-4B: a bean that throws gets its message again, up to the limit; then it is a dead letter, and the rest goes on. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 4})
    void throwing_up_to_the_limit(int limit) throws Exception {
        String queue = Mail.unique("throws");
        Mail.send(broker.url(), queue, "a", "poison", "b");
        try (Container c = new Container(broker.url(), queue, 1, limit, true, m -> {
            seen.add(Mail.label(m));
            if (Mail.body(m).equals("poison")) {
                throw new IllegalStateException("not this one");
            }
        })) {
            Message dead = Mail.deadLetters(broker.url(), queue, 1).get(0);
            assertEquals("poison", Mail.body(dead));
            String cause = dead.getStringProperty(Mail.CAUSE);
            assertTrue(cause.contains("Exceeded ra redelivery policy limit"), cause);
            await(limit + 3);
            Mail.awaitDepth(broker.url(), queue, 0);
        }
        List<String> want = new ArrayList<>();
        for (int i = 1; i <= limit + 1; i++) {
            want.add("poison#" + i + (i > 1 ? "!" : ""));
        }
        assertEquals(want, of("poison"));
        assertEquals(List.of("a#1"), of("a"));
        assertEquals(List.of("b#1"), of("b"));
    }

    /** SIGKILL of the broker while beans work: each message is done at least once, and none becomes a dead letter. */
    @Test
    @Reference.Beyond("R-CLIENT-35, R-EDGE-09: the client takes what comes again for duplicates, and ActiveMQ makes them dead letters")
    void broker_killed_while_beans_work() throws Exception {
        BrokerProcess own = Broker.own("MessageDrivenBeanKill");
        String queue = Mail.unique("kill");
        try {
            Mail.send(own.url(), queue, Mail.numbered(200));
            try (Container c = new Container("failover:(" + own.url() + ")?initialReconnectDelay=50", queue, 2, 6, true,
                    m -> seen.add(Mail.body(m)))) {
                await(60);
                own.kill();
                own.start();
                Set<String> all = new HashSet<>(List.of(Mail.numbered(200)));
                for (long end = System.nanoTime() + 3 * Mail.SOON * 1_000_000L; !new HashSet<>(List.copyOf(seen)).containsAll(all)
                        && System.nanoTime() < end; ) {
                    Thread.sleep(20);
                }
                assertTrue(new HashSet<>(List.copyOf(seen)).containsAll(all), "of 200 only " + new HashSet<>(List.copyOf(seen)).size());
                Mail.awaitDepth(own.url(), queue, 0);
            }
            Mail.deadLetters(own.url(), queue, 0);
        } finally {
            own.terminate();
        }
    }
}

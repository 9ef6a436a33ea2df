package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Message;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SimpleMessageListenerContainer;

/** C26: Spring's listener containers at every cache level. */
class SpringContainerTest {
    private static final String LEVELS = """
        CACHE_NONE, 1
        CACHE_NONE, 5
        CACHE_CONNECTION, 1
        CACHE_CONNECTION, 5
        CACHE_SESSION, 1
        CACHE_SESSION, 5
        CACHE_CONSUMER, 1
        CACHE_CONSUMER, 5
        """;

    /** C26 part 1: the broker's delay holds although the container closes its consumer after each message. */
    @ParameterizedTest
    @CsvSource(textBlock = LEVELS)
    void C26_broker_redelivery(String cache, int consumers) throws Exception {
        Pace.keeps(() -> brokerRedelivery(cache, consumers));
    }

    private static void brokerRedelivery(String cache, int consumers) throws Exception {
        try (BrokerProcess broker = new BrokerProcess("C26", Broker.resource("broker-redelivery.xml")).start()) {
            Containers.Listener listener = run(broker.url(), 0, 0, cache, consumers);
            List<Containers.Listener.Delivery> got = listener.of("m0");
            assertEquals(List.of("m0#1", "m0#2!", "m0#3!"), got.stream().map(Containers.Listener.Delivery::label).toList());
            for (int i = 1; i < got.size(); i++) {
                Pace.within(1000, got.get(i).at() - got.get(i - 1).at(), "redelivery " + i);
            }
        }
    }

    /** C26 part 2: the client's limit holds, whoever has the message next. */
    @ParameterizedTest
    @CsvSource(textBlock = LEVELS)
    void C26_client_redelivery(String cache, int consumers) throws Exception {
        Pace.keeps(() -> clientRedelivery(cache, consumers));
    }

    private static void clientRedelivery(String cache, int consumers) throws Exception {
        try (BrokerProcess broker = new BrokerProcess("C26", null).start()) {
            Containers.Listener listener = run(broker.url(), 2, 1000, cache, consumers);
            List<Containers.Listener.Delivery> got = listener.of("m0");
            assertEquals(3, got.size(), "" + got);
            for (int i = 1; i < got.size() && cache.equals("CACHE_CONSUMER") && consumers == 1; i++) {
                Pace.within(1000, got.get(i).at() - got.get(i - 1).at(), "redelivery " + i);
            }
        }
    }

    /** Sends m0..m2, of which m0 fails, and returns what the listener got when m0 is a dead letter. */
    private static Containers.Listener run(String url, int max, long delay, String cache, int consumers) throws Exception {
        String queue = Mail.unique("C26");
        Containers.Listener listener = new Containers.Listener(0, "m0");
        DefaultMessageListenerContainer container =
            Containers.transacted(Containers.factory(url, max, delay), queue, cache, consumers, listener);
        try {
            Mail.send(url, queue, "m0", "m1", "m2");
            long sent = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
            List<Message> dead = Mail.deadLetters(url, queue, 1);
            assertEquals("m0", Mail.body(dead.get(0)));
            Mail.awaitDepth(url, queue, 0);
            for (String good : List.of("m1", "m2")) {
                assertEquals(1, listener.of(good).size(), good);
                Pace.inTime(max > 0 || listener.of(good).get(0).at() - sent < 900, good + " waited behind m0's retries");
            }
        } finally {
            container.shutdown();
        }
        return listener;
    }

    /** C26 part 3: the broker goes and comes back; the containers find it, and hammer nobody meanwhile. */
    @ParameterizedTest
    @CsvSource({"CACHE_NONE, 1", "CACHE_NONE, 5", "CACHE_CONNECTION, 1", "CACHE_SESSION, 1", "CACHE_CONSUMER, 1", "CACHE_CONSUMER, 5"})
    void C26_outage(String cache, int consumers) throws Exception {
        Pace.keeps(() -> outage(cache, consumers));
    }

    private static void outage(String cache, int consumers) throws Exception {
        int total = 100 * consumers;
        Set<String> done = new HashSet<>();
        List<String> again = new ArrayList<>();
        List<String> wrong = new ArrayList<>();
        CountDownLatch all = new CountDownLatch(1);
        try (BrokerProcess broker = new BrokerProcess("C26-outage", null).start()) {
            String queue = Mail.unique("C26");
            Mail.send(broker.url(), queue, Mail.numbered(total));
            Containers.Counting factory = new Containers.Counting(broker.url(), 6, 1000);
            DefaultMessageListenerContainer container = Containers.transacted(factory, queue, cache, consumers, m -> {
                try {
                    Thread.sleep(20);
                    synchronized (done) {
                        if (!done.add(Mail.body(m))) {
                            again.add(Mail.label(m));
                            if (!m.getJMSRedelivered()) {
                                wrong.add(Mail.body(m) + " came again without the flag");
                            }
                        }
                        if (done.size() == total) {
                            all.countDown();
                        }
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            try {
                Thread.sleep(800);
                for (boolean kill : List.of(false, true)) {
                    if (kill) {
                        broker.kill();
                    } else {
                        assertEquals(0, broker.terminate());
                    }
                    int attempts = factory.attempts.get();
                    Thread.sleep(3000);
                    attempts = factory.attempts.get() - attempts;
                    assertTrue(attempts <= 3 * 3 * consumers, attempts + " connection attempts in 3 s");
                    Pace.inTime(attempts >= 1, "no connection attempt in 3 s");
                    int before = size(done);
                    broker.start();
                    long back = System.nanoTime();
                    Mail.await("something is done after the broker's return", () -> size(done) > before || before == total);
                    Pace.inTime(System.nanoTime() - back < 3_000_000_000L, "nothing within 3 s of the broker's return");
                    Thread.sleep(300);
                }
                assertTrue(all.await(60, TimeUnit.SECONDS), "processed " + size(done));
                Mail.awaitDepth(broker.url(), queue, 0);
                Mail.deadLetters(broker.url(), queue, 0);
                assertEquals(List.of(), wrong);
                assertTrue(again.size() <= 2 * consumers, "more came again than was in work: " + again);
            } finally {
                container.shutdown();
            }
        }
    }

    private static int size(Set<String> s) {
        synchronized (s) {
            return s.size();
        }
    }

    /** The simple container. Outside a transaction it keeps a listener's failure to itself: nothing is redelivered. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void simple_container(boolean transacted) throws Exception {
        try (BrokerProcess broker = new BrokerProcess("simple", null).start()) {
            String queue = Mail.unique("simple");
            Containers.Listener listener = new Containers.Listener(0, "m1");
            SimpleMessageListenerContainer c = new SimpleMessageListenerContainer();
            c.setConnectionFactory(Containers.factory(broker.url(), 2, 10));
            c.setDestinationName(queue);
            c.setSessionTransacted(transacted);
            c.setConcurrentConsumers(2);
            c.setMessageListener(listener);
            c.afterPropertiesSet();
            c.start();
            try {
                Mail.send(broker.url(), queue, "m0", "m1", "m2");
                if (transacted) {
                    assertEquals("m1", Mail.body(Mail.deadLetters(broker.url(), queue, 1).get(0)));
                }
                Mail.awaitDepth(broker.url(), queue, 0);
                assertEquals(transacted ? 3 : 1, listener.of("m1").size());
                Mail.deadLetters(broker.url(), queue, 0);
                assertEquals(1, listener.of("m0").size());
                assertEquals(1, listener.of("m2").size());
            } finally {
                c.shutdown();
            }
        }
    }

    /** A durable subscription through the container: offline messages come when it is back. */
    @Test
    void durable_subscription() throws Exception {
        try (BrokerProcess broker = new BrokerProcess("durable", null).start()) {
            String topic = "topic://" + Mail.unique("news");
            Containers.Listener listener = new Containers.Listener(0);
            durable(broker.url(), topic, listener).shutdown();
            Mail.send(broker.url(), topic, "m0", "m1");
            DefaultMessageListenerContainer c = durable(broker.url(), topic, listener);
            try {
                Mail.await("both messages", () -> listener.all().size() >= 2);
                assertEquals(List.of("m0#1", "m1#1"), listener.all().stream().map(Containers.Listener.Delivery::label).toList());
            } finally {
                c.shutdown();
            }
        }
    }

    private static DefaultMessageListenerContainer durable(String url, String topic, Containers.Listener listener) throws Exception {
        DefaultMessageListenerContainer c = new DefaultMessageListenerContainer();
        c.setConnectionFactory(Containers.factory(url, 6, 10));
        c.setPubSubDomain(true);
        c.setSubscriptionDurable(true);
        c.setClientId("spring");
        c.setDurableSubscriptionName("sub");
        c.setDestination(Client.destination(topic));
        c.setMessageListener(listener);
        c.afterPropertiesSet();
        c.start();
        Mail.await("a registered consumer", c::isRegisteredWithDestination);
        return c;
    }
}

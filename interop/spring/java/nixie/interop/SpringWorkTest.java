package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.connection.JmsTransactionManager;
import org.springframework.jms.connection.SingleConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/** Containers that grow, shrink, pause and stop; templates that receive, and ask. */
class SpringWorkTest {
    @RegisterExtension
    static final Broker broker = Broker.plain();

    private final List<String> seen = Collections.synchronizedList(new ArrayList<>());

    private DefaultMessageListenerContainer container(ConnectionFactory f, String queue, Object listener) {
        DefaultMessageListenerContainer c = new DefaultMessageListenerContainer();
        c.setConnectionFactory(f);
        c.setDestinationName(queue);
        c.setSessionTransacted(true);
        c.setReceiveTimeout(200);
        c.setRecoveryInterval(300);
        c.setMessageListener(listener);
        return c;
    }

    private static DefaultMessageListenerContainer started(DefaultMessageListenerContainer c) {
        c.afterPropertiesSet();
        c.start();
        return c;
    }

    private void await(int n) throws InterruptedException {
        for (long end = System.nanoTime() + Mail.SOON * 1_000_000L; seen.size() < n && System.nanoTime() < end; ) {
            Thread.sleep(10);
        }
    }

    private static List<String> firsts(int n) {
        return Arrays.stream(Mail.numbered(n)).map(t -> t + "#1").toList();
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private MessageListener noting(long work) {
        return m -> {
            try {
                seen.add(Mail.label(m));
                sleep(work);
            } catch (jakarta.jms.JMSException e) {
                throw new IllegalStateException(e);
            }
        };
    }

    /** A container of one to ten consumers: what those that go had prefetched comes to others as if it had never been out. */
    @ParameterizedTest
    @CsvSource({"CACHE_CONSUMER, 1000", "CACHE_CONSUMER, 1", "CACHE_SESSION, 1000", "CACHE_NONE, 1000"})
    void grows_and_shrinks(String cache, int prefetch) throws Exception {
        String queue = Mail.unique("scale");
        ActiveMQConnectionFactory f = Containers.factory(broker.url(), 6, 1000);
        f.getPrefetchPolicy().setAll(prefetch);
        DefaultMessageListenerContainer c = container(f, queue, noting(3));
        c.setCacheLevelName(cache);
        c.setConcurrency("1-10");
        c.setMaxMessagesPerTask(5);
        c.setIdleTaskExecutionLimit(1);
        started(c);
        try {
            int total = cache.equals("CACHE_NONE") ? 150 : 300;
            Mail.send(broker.url(), queue, Mail.numbered(total));
            await(total);
            Mail.awaitDepth(broker.url(), queue, 0);
            Thread.sleep(500);
            assertEquals(new HashSet<>(firsts(total)), new HashSet<>(seen));
            assertEquals(total, seen.size());
            Mail.deadLetters(broker.url(), queue, 0);
        } finally {
            c.shutdown();
        }
    }

    /** Consumers that come and go with each message: groups stay in order, and none is left lying. */
    @ParameterizedTest
    @CsvSource({"CACHE_NONE, 0", "CACHE_NONE, 1000", "CACHE_CONSUMER, 0"})
    void groups_of_short_lived_consumers(String cache, int prefetch) throws Exception {
        String queue = Mail.unique("groups");
        ActiveMQConnectionFactory f = Containers.factory(broker.url(), 6, 1000);
        f.getPrefetchPolicy().setAll(prefetch);
        DefaultMessageListenerContainer c = container(f, queue, noting(2));
        c.setCacheLevelName(cache);
        c.setConcurrentConsumers(5);
        c.setMaxMessagesPerTask(3);
        started(c);
        try {
            JmsTemplate t = new JmsTemplate(new SingleConnectionFactory(Containers.factory(broker.url(), 6, 1000)));
            for (int i = 0; i < 90; i++) {
                String text = "g" + i % 9 + "." + i / 9;
                t.send(queue, s -> {
                    Message m = Mail.text(s, queue, text);
                    m.setStringProperty("JMSXGroupID", text.substring(0, 2));
                    return m;
                });
            }
            ((SingleConnectionFactory) t.getConnectionFactory()).destroy();
            await(90);
            Mail.awaitDepth(broker.url(), queue, 0);
            for (int g = 0; g < 9; g++) {
                String group = "g" + g;
                assertEquals(Arrays.stream(Mail.numbered(10)).map(n -> group + "." + n.substring(1) + "#1").toList(),
                    seen.stream().filter(l -> l.startsWith(group + ".")).toList());
            }
        } finally {
            c.shutdown();
        }
    }

    /**
     * Shut down in the middle of a message: that one is done, unless Spring interrupts the listener, as it does where the
     * container is to take nothing more; the others are there as they were.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shut_down_while_at_work(boolean acceptWhileStopping) throws Exception {
        String queue = Mail.unique("shutdown");
        CountDownLatch begun = new CountDownLatch(1);
        DefaultMessageListenerContainer c = container(Containers.factory(broker.url(), 6, 1000), queue, (MessageListener) m -> {
            begun.countDown();
            noting(1000).onMessage(m);
        });
        c.setAcceptMessagesWhileStopping(acceptWhileStopping);
        started(c);
        Mail.send(broker.url(), queue, Mail.numbered(5));
        assertTrue(begun.await(Mail.SOON, TimeUnit.MILLISECONDS));
        c.shutdown();
        assertEquals(List.of("m0#1"), seen);
        List<String> left = new ArrayList<>(firsts(5).subList(1, 5));
        if (!acceptWhileStopping) {
            left.add(0, "m0#2!");
        }
        assertEquals(left, Mail.take(broker.url(), queue, left.size()));
    }

    /** Stopped and started, again and again: everything once, in order. */
    @Test
    void stopped_and_started() throws Exception {
        String queue = Mail.unique("pause");
        DefaultMessageListenerContainer c = started(container(Containers.factory(broker.url(), 6, 1000), queue, noting(20)));
        try {
            Mail.send(broker.url(), queue, Mail.numbered(60));
            for (int i = 0; i < 4; i++) {
                Thread.sleep(250);
                CountDownLatch stopped = new CountDownLatch(1);
                c.stop(stopped::countDown);
                assertTrue(stopped.await(Mail.SOON, TimeUnit.MILLISECONDS));
                int n = seen.size();
                Thread.sleep(200);
                assertEquals(n, seen.size(), "worked while stopped");
                c.start();
            }
            await(60);
            Mail.awaitDepth(broker.url(), queue, 0);
        } finally {
            c.shutdown();
        }
        assertEquals(firsts(60), seen);
    }

    /** A template that receives makes a consumer for each message, which prefetches and gives back what it does not want. */
    @ParameterizedTest
    @CsvSource({"plain, false", "plain, true", "single, true", "caching, true", "caching without consumers, false"})
    void template_receives(String how, boolean transacted) throws Exception {
        String queue = Mail.unique("template");
        ActiveMQConnectionFactory bare = Containers.factory(broker.url(), 6, 1000);
        ConnectionFactory f = bare;
        if (how.equals("single")) {
            f = new SingleConnectionFactory(bare);
        } else if (how.startsWith("caching")) {
            CachingConnectionFactory caching = new CachingConnectionFactory(bare);
            caching.setCacheConsumers(how.equals("caching"));
            f = caching;
        }
        try {
            JmsTemplate t = new JmsTemplate(f);
            t.setSessionTransacted(transacted);
            t.setReceiveTimeout(Mail.SOON);
            Mail.send(broker.url(), queue, Mail.numbered(100));
            for (int i = 0; i < 100; i++) {
                seen.add(Mail.label(t.receive(queue)));
            }
            t.setReceiveTimeout(Mail.QUIET);
            assertNull(t.receive(queue));
            assertEquals(firsts(100), seen);
            Mail.awaitDepth(broker.url(), queue, 0);
        } finally {
            if (f instanceof SingleConnectionFactory s) {
                s.destroy();
            }
        }
    }

    /** Consumers that stay cached, one for each correlation id, take nothing from each other. */
    @Test
    void template_receives_by_correlation_id() throws Exception {
        String queue = Mail.unique("correlated");
        CachingConnectionFactory f = new CachingConnectionFactory(Containers.factory(broker.url(), 6, 1000));
        f.setCacheConsumers(true);
        try {
            JmsTemplate t = new JmsTemplate(f);
            t.setReceiveTimeout(Mail.SOON);
            for (int i = 0; i < 300; i++) {
                String id = "c" + i;
                t.send(queue, s -> {
                    Message m = Mail.text(s, queue, id);
                    m.setJMSCorrelationID(id);
                    return m;
                });
            }
            for (int i = 299; i >= 0; i--) {
                Message m = t.receiveSelected(queue, "JMSCorrelationID = 'c" + i + "'");
                assertEquals("c" + i + "#1", Mail.label(m));
            }
            Mail.awaitDepth(broker.url(), queue, 0);
        } finally {
            f.destroy();
        }
    }

    /** sendAndReceive makes a temporary queue for each request; none is left. */
    @Test
    void requests_at_volume() throws Exception {
        String queue = Mail.unique("requests");
        CachingConnectionFactory server = new CachingConnectionFactory(Containers.factory(broker.url(), 6, 1000));
        CachingConnectionFactory client = new CachingConnectionFactory(Containers.factory(broker.url(), 6, 1000));
        DefaultMessageListenerContainer c = container(server, queue, (SessionAwareMessageListener<Message>) (m, s) -> {
            try (jakarta.jms.MessageProducer p = s.createProducer(m.getJMSReplyTo())) {
                p.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                p.send(s.createTextMessage("re: " + Mail.body(m)));
            }
        });
        c.setConcurrency("1-5");
        started(c);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            JmsTemplate t = new JmsTemplate(client);
            t.setReceiveTimeout(Mail.SOON);
            List<Future<String>> answers = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                String text = "q" + i;
                answers.add(threads.submit(() -> {
                    Message m = t.sendAndReceive(queue, s -> Mail.text(s, queue, text));
                    return m == null ? "nothing" : Mail.body(m);
                }));
            }
            for (int i = 0; i < answers.size(); i++) {
                assertEquals("re: q" + i, answers.get(i).get(60, TimeUnit.SECONDS));
            }
            Mail.awaitDepth(broker.url(), queue, 0);
            assertEquals(List.of(), get("/api/v1/destinations").lines().filter(l -> l.contains("temp-queue")).toList());
        } finally {
            threads.shutdownNow();
            c.shutdown();
            server.destroy();
            client.destroy();
        }
    }

    private static String get(String path) throws Exception {
        HttpRequest r = HttpRequest.newBuilder(URI.create(broker.process().admin() + path)).build();
        return HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body();
    }

    private static double metric(String name) throws Exception {
        return get("/metrics").lines().filter(l -> l.startsWith(name + " ")).mapToDouble(l -> Double.parseDouble(l.substring(name.length() + 1))).sum();
    }

    /**
     * Acknowledge modes of a container whose listener throws. CLIENT recovers the session, up to the client's limit; in AUTO
     * and DUPS_OK the client has acknowledged before the listener is asked, as Spring's documentation says.
     */
    @ParameterizedTest
    @CsvSource({"AUTO_ACKNOWLEDGE, 1", "DUPS_OK_ACKNOWLEDGE, 1", "CLIENT_ACKNOWLEDGE, 3"})
    void acknowledge_modes(String mode, int deliveries) throws Exception {
        String queue = Mail.unique("modes");
        Containers.Listener listener = new Containers.Listener(0, "m1");
        DefaultMessageListenerContainer c = container(Containers.factory(broker.url(), 2, 10), queue, listener);
        c.setSessionTransacted(false);
        c.setSessionAcknowledgeModeName(mode);
        started(c);
        try {
            Mail.send(broker.url(), queue, "m0", "m1", "m2");
            Mail.deadLetters(broker.url(), queue, deliveries == 1 ? 0 : 1);
            Mail.awaitDepth(broker.url(), queue, 0);
            assertEquals(deliveries, listener.of("m1").size(), "" + listener.all());
            assertEquals(1, listener.of("m0").size());
            assertEquals(1, listener.of("m2").size());
        } finally {
            c.shutdown();
        }
    }

    /** With a transaction manager, what the listener sends by a template is part of its transaction. */
    @Test
    void transaction_manager() throws Exception {
        String queue = Mail.unique("in");
        String out = Mail.unique("out");
        CachingConnectionFactory f = new CachingConnectionFactory(Containers.factory(broker.url(), 2, 10));
        JmsTemplate t = new JmsTemplate(f);
        Containers.Listener listener = new Containers.Listener(0, "m1");
        DefaultMessageListenerContainer c = container(f, queue, (MessageListener) m -> {
            t.send(out, s -> Mail.text(s, out, "re: " + Mail.body(m)));
            listener.onMessage(m);
        });
        c.setTransactionManager(new JmsTransactionManager(f));
        c.setConcurrentConsumers(3);
        started(c);
        try {
            Mail.send(broker.url(), queue, "m0", "m1", "m2");
            assertEquals("m1", Mail.body(Mail.deadLetters(broker.url(), queue, 1).get(0)));
            Mail.awaitDepth(broker.url(), queue, 0);
            assertEquals(3, listener.of("m1").size());
            assertEquals(new HashSet<>(List.of("re: m0#1", "re: m2#1")), new HashSet<>(Mail.take(broker.url(), out, 2)));
        } finally {
            c.shutdown();
            f.destroy();
        }
    }

    /** A container whose client id is another's tries again at its interval, leaves nothing behind, and works once the id is free. */
    @ParameterizedTest
    @ValueSource(strings = {"", "failover"})
    void client_id_in_use(String transport) throws Exception {
        String id = Mail.unique("client");
        String topic = Mail.unique("topic");
        Mail.await("no connections of other tests", () -> metric("nixie_connections") == 0);
        Client holder = Client.to(broker.url()).clientId(id).open();
        String url = transport.isEmpty() ? broker.url() : "failover:(" + broker.url() + ")?initialReconnectDelay=100";
        DefaultMessageListenerContainer c = container(Containers.factory(url, 6, 1000), topic, noting(0));
        c.setPubSubDomain(true);
        c.setSubscriptionDurable(true);
        c.setDurableSubscriptionName("sub");
        c.setClientId(id);
        Thread starting = new Thread(() -> started(c)); // Spring waits for the first connection
        starting.start();
        try {
            Thread.sleep(3000);
            Mail.await("no connections that were refused", () -> metric("nixie_connections") == 1); // but for the one that tries just now
            holder.close();
            starting.join(Mail.SOON);
            String sub = "";
            for (long end = System.nanoTime() + Mail.SOON * 1_000_000L; sub.isEmpty() && System.nanoTime() < end; Thread.sleep(50)) {
                sub = get("/api/v1/destinations").contains(id) ? id : "";
            }
            Mail.send(broker.url(), "topic://" + topic, "m0");
            await(1);
            assertEquals(List.of("m0#1"), seen);
        } finally {
            c.shutdown();
        }
    }
}

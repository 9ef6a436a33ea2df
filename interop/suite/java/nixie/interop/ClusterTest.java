package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TransactionRolledBackException;
import org.apache.activemq.transport.failover.FailoverTransport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Two brokers, each alone with its messages, that tell clients of each other: what clients learn, where they
 * go, and that nothing is lost and nothing charged when they move (OpenWire 13).
 */
@Reference.Beyond("lists that are told without a network, and change while the broker runs")
class ClusterTest {
    private static final String QUICK = "?initialReconnectDelay=10&maxReconnectDelay=100&useExponentialBackOff=false";
    private static final String UPDATE = "?updateClusterClients=true&updateClusterClientsOnRemove=true";
    private static final String REBALANCE = UPDATE + "&rebalanceClusterClients=true";
    /** INDIVIDUAL_ACKNOWLEDGE of the client. */
    private static final int INDIVIDUAL = 4;

    /** Two brokers, each with a file of its own. */
    private static final class Pair implements AutoCloseable {
        final BrokerProcess a;
        final BrokerProcess b;
        private final Path fileA = file();
        private final Path fileB = file();

        Pair(String options) throws Exception {
            a = Broker.own("cluster-a", fileA, options);
            b = Broker.own("cluster-b", fileB, options);
            list(a, a.url(), b.url());
            list(b, a.url(), b.url());
        }

        private static Path file() throws IOException {
            Path target = Files.createDirectories(Path.of(System.getProperty("interop.target", "target"), "broker-data"));
            return Files.writeString(Files.createTempFile(target.toAbsolutePath(), "cluster", ".yaml"), "cluster: []\n");
        }

        /** Writes the list that a broker tells its clients, and has it read. */
        void list(BrokerProcess of, String... urls) throws IOException, InterruptedException {
            Files.writeString(of == a ? fileA : fileB, "cluster: [" + String.join(", ", urls) + "]\n");
            post(of, "reload", "{}");
        }

        /** Takes the other broker from a broker's list and adds it again: half of its clients go there. */
        void push(BrokerProcess from) throws IOException, InterruptedException {
            list(from);
            list(from, a.url(), b.url());
        }

        String onlyA(String options) {
            return "failover:(" + a.url() + ")" + QUICK + options;
        }

        String both(String options) {
            return "failover:(" + a.url() + "," + b.url() + ")" + QUICK + options;
        }

        @Override
        public void close() throws Exception {
            for (BrokerProcess p : new BrokerProcess[] {a, b}) {
                if (p.alive()) {
                    assertEquals(0, p.terminate(), p.tail(40));
                }
                String log = Files.readString(p.log());
                assertFalse(log.contains("panic:") || log.contains("fatal error:"), log);
            }
        }
    }

    private static void post(BrokerProcess to, String path, String body) throws IOException, InterruptedException {
        HttpResponse<String> r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(to.admin() + "/api/v1/" + path))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build(), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, r.statusCode(), r.body());
    }

    /** Where a client is connected to: the address, or null while it is nowhere. */
    private static String at(Client c) {
        FailoverTransport f = c.connection.getTransport().narrow(FailoverTransport.class);
        URI uri = f.isConnected() ? f.getConnectedTransportURI() : null;
        return uri == null ? null : "tcp://127.0.0.1:" + uri.getPort();
    }

    /** Has a client, the only one of its broker, sent to one of the two; it is there with its consumers. */
    private static void move(Pair pair, Client c, BrokerProcess to) throws Exception {
        if (!to.url().equals(at(c))) {
            pair.push(to == pair.a ? pair.b : pair.a);
            Mail.await("at " + to.url(), () -> to.url().equals(at(c)));
            c.roundTrip();
        }
    }

    /** A client with one address in its URL learns of the other broker, and goes there when the first has died. */
    @Test
    void learns_the_list_and_survives_the_only_broker_of_its_url() throws Exception {
        try (Pair pair = new Pair(UPDATE); Client c = Client.open(pair.onlyA(""))) {
            String queue = Mail.unique("learns");
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            Mail.send(s, queue, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            assertEquals(pair.a.url(), at(c), "nobody asked it to move");
            Mail.awaitDepth(pair.a.url(), queue, 0); // its acknowledgement has arrived
            pair.a.kill();
            Mail.send(s, queue, "m1");
            assertEquals("m1#1", Mail.label(Mail.must(consumer)));
            assertEquals(pair.b.url(), at(c));
            Mail.awaitDepth(pair.b.url(), queue, 0);
            pair.b.kill(); // and back: its own address is not forgotten
            pair.a.start();
            Mail.send(s, queue, "m2");
            assertEquals("m2#1", Mail.label(Mail.must(consumer)));
            assertEquals(pair.a.url(), at(c));
        }
    }

    /** A list that changes while the client is connected: added, and removed. */
    @Test
    void hears_of_changes() throws Exception {
        try (Pair pair = new Pair(UPDATE)) {
            pair.list(pair.a);
            try (Client c = Client.open(pair.onlyA(""))) {
                Session s = c.auto();
                pair.list(pair.a, pair.a.url(), pair.b.url());
                Mail.send(s, Mail.unique("changes"), "m0"); // an answer: what was told before has arrived
                pair.a.kill();
                Mail.send(s, Mail.unique("changes"), "m1");
                assertEquals(pair.b.url(), at(c));
                pair.a.start();
                pair.list(pair.b);
                pair.list(pair.a, pair.a.url(), pair.b.url());
                Mail.send(s, Mail.unique("changes"), "m2");
                assertEquals(pair.b.url(), at(c));
            }
        }
    }

    /** updateURIsSupported=false: the client knows its own URL alone. */
    @Test
    void updateURIsSupported_false_ignores_the_list() throws Exception {
        try (Pair pair = new Pair(REBALANCE)) {
            List<Client> all = new ArrayList<>();
            try {
                for (int i = 0; i < 10; i++) {
                    all.add(Client.open(pair.onlyA("&updateURIsSupported=false&startupMaxReconnectAttempts=5")));
                }
                pair.push(pair.a); // the half that is cut off comes back
                Thread.sleep(500);
                for (Client c : all) {
                    c.roundTrip();
                }
                Mail.await("all there", () -> count(all, pair.a) == 10);
                pair.a.kill();
                Mail.await("interrupted", () -> at(all.get(0)) == null);
                Thread.sleep(500);
                assertEquals(null, at(all.get(0)));
                pair.a.start();
                Mail.await("at its own broker again", () -> pair.a.url().equals(at(all.get(0))));
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    /** rebalanceClusterClients=true: clients that all know one broker end up on both, and work there. */
    @Test
    void rebalance_spreads_clients() throws Exception {
        try (Pair pair = new Pair(REBALANCE)) {
            List<Client> all = new ArrayList<>();
            try {
                for (int i = 0; i < 16; i++) {
                    all.add(Client.open(pair.onlyA("")));
                }
                Mail.await("some at each broker", () -> count(all, pair.a) + count(all, pair.b) == 16 && count(all, pair.a) > 0 && count(all, pair.b) > 0);
                for (Client c : all) {
                    String where;
                    Message m;
                    do { // unless it is moved only now
                        where = at(c);
                        String queue = Mail.unique("spread");
                        Session s = c.auto();
                        Mail.send(s, queue, "m0");
                        m = Client.consumer(s, queue).receive(Mail.SOON);
                    } while (m == null && !where.equals(at(c)));
                    assertEquals("m0#1", Mail.label(m));
                }
                pair.b.kill();
                Mail.await("all at the one that is left", () -> count(all, pair.a) == 16);
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    private static int count(List<Client> all, BrokerProcess at) {
        int n = 0;
        for (Client c : all) {
            n += at.url().equals(at(c)) ? 1 : 0;
        }
        return n;
    }

    /** A broker that is added gets its share of the clients that are connected, and none of them fails in its work. */
    @Test
    void a_new_broker_gets_its_share() throws Exception {
        try (Pair pair = new Pair(REBALANCE)) {
            pair.list(pair.a);
            List<Client> all = new ArrayList<>();
            try {
                for (int i = 0; i < 10; i++) {
                    all.add(Client.open(pair.onlyA("")));
                    assertEquals(pair.a.url(), at(all.get(i)));
                }
                pair.list(pair.a, pair.a.url(), pair.b.url());
                Mail.await("half at each", () -> count(all, pair.a) == 5 && count(all, pair.b) == 5);
                Thread.sleep(500);
                assertEquals(5, count(all, pair.b), "nobody goes on moving");
                for (Client c : all) {
                    Mail.send(c.auto(), Mail.unique("share"), "m0");
                }
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    /** Clients are moved by hand: before a broker is stopped, or after one came back and stands empty. */
    @Test
    void moved_by_hand() throws Exception {
        String queue = Mail.unique("by-hand");
        try (Pair pair = new Pair(UPDATE)) {
            List<Client> all = new ArrayList<>();
            try {
                Mail.send(pair.a.url(), queue, Mail.numbered(8));
                for (int i = 0; i < 4; i++) {
                    all.add(Client.to(pair.onlyA("")).prefetch(1).open());
                    Mail.must(Client.consumer(all.get(i).transacted(), queue));
                }
                post(pair.a, "connections/move", "{\"count\":2}");
                Mail.await("half at each", () -> count(all, pair.a) == 2 && count(all, pair.b) == 2);
                post(pair.a, "connections/move", "{\"all\":true}");
                Mail.await("all at the other", () -> count(all, pair.b) == 4);
                assertEquals(0, pair.a.terminate());
                pair.a.start();
                List<String> got = Mail.take(pair.a.url(), queue, 8);
                for (String label : got) {
                    assertTrue(label.matches("m\\d#(1|2!)"), got.toString()); // 2: handed out with unknown fate
                }
                post(pair.b, "connections/move", "{\"count\":1}");
                Mail.await("one is back", () -> count(all, pair.a) == 1 && count(all, pair.b) == 3);
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    /** rebalanceClusterClients=false: nobody is moved, whatever the list becomes. */
    @Test
    void without_rebalance_nobody_moves() throws Exception {
        try (Pair pair = new Pair(UPDATE)) {
            List<Client> all = new ArrayList<>();
            try {
                for (int i = 0; i < 10; i++) {
                    all.add(Client.open(pair.onlyA(i % 2 == 0 ? "" : "&randomize=false")));
                }
                for (int i = 0; i < 4; i++) {
                    pair.push(pair.a);
                    Thread.sleep(400);
                    assertEquals(10, count(all, pair.a));
                }
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    /** randomize=false: the first of the list; each client gets another one first. */
    @Test
    void randomize_false_goes_to_the_first() throws Exception {
        try (Pair pair = new Pair(REBALANCE)) {
            List<Client> all = new ArrayList<>();
            try {
                for (int i = 0; i < 6; i++) {
                    all.add(Client.open(pair.onlyA("&randomize=false")));
                    Client c = all.get(i);
                    String want = i % 2 == 0 ? pair.a.url() : pair.b.url();
                    Mail.await("client " + i + " at " + want, () -> want.equals(at(c)));
                }
                assertEquals(3, count(all, pair.b));
            } finally {
                for (Client c : all) {
                    c.close();
                }
            }
        }
    }

    /** priorityBackup=true: back to the first of the URL as soon as it is there again; backup=true: ready before. */
    @ParameterizedTest
    @ValueSource(strings = {"&randomize=false&priorityBackup=true", "&randomize=false&priorityBackup=true&backup=true&backupPoolSize=2"})
    void priority_backup(String options) throws Exception {
        try (Pair pair = new Pair(UPDATE); Client c = Client.open(pair.both(options))) {
            String queue = Mail.unique("priority");
            Session s = c.auto();
            assertEquals(pair.a.url(), at(c));
            pair.a.kill();
            Mail.send(s, queue, "m0");
            assertEquals(pair.b.url(), at(c));
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, queue))));
            pair.a.start();
            Mail.await("back at the first", () -> pair.a.url().equals(at(c)));
            Mail.send(s, queue, "m1");
            assertEquals(1, Mail.browse(pair.a.url(), queue).size(), "at A; B has " + Mail.browse(pair.b.url(), queue).size());
        }
    }

    /**
     * A client with priorityBackup=true returns to its first broker without a word to its sessions. A transaction that
     * it had begun is not committed without what it acknowledges: nothing is lost, and nothing is sent twice.
     */
    @Test
    void priority_backup_in_a_transaction() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        try (Pair pair = new Pair(UPDATE); Client c = Client.open(pair.both("&randomize=false&priorityBackup=true"))) {
            pair.a.kill();
            Mail.await("at the second", () -> pair.b.url().equals(at(c)));
            Mail.send(pair.b.url(), in, "m0", "m1", "m2");
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, in);
            assertEquals("m0", Mail.next(consumer));
            Mail.send(s, out, "forwarded");
            pair.a.start();
            Mail.await("back at the first", () -> pair.a.url().equals(at(c)));
            assertThrows(TransactionRolledBackException.class, s::commit);
            Client.abandon(c.connection);
            List<String> got = Mail.take(pair.b.url(), in, 3);
            got.replaceAll(label -> label.substring(0, 2));
            got.sort(null);
            assertEquals(List.of("m0", "m1", "m2"), got);
            for (BrokerProcess p : List.of(pair.a, pair.b)) {
                assertEquals(0, Mail.browse(p.url(), out).size(), "sent in the rolled back transaction");
                assertEquals(0, Mail.browse(p.url(), in).size());
                Mail.deadLetters(p.url(), in, 0);
            }
        }
    }

    /** backup=true: a spare connection, which is used at once, and which costs no messages. */
    @Test
    void backup() throws Exception {
        try (Pair pair = new Pair(UPDATE); Client c = Client.open(pair.both("&randomize=false&backup=true"))) {
            String queue = Mail.unique("backup");
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            for (BrokerProcess p : List.of(pair.a, pair.b)) {
                for (int i = 0; i < 5; i++) {
                    Mail.send(s, queue, "m" + i);
                    s.commit();
                    assertEquals("m" + i + "#1", Mail.label(Mail.must(consumer)));
                    s.commit();
                }
                assertEquals(p.url(), at(c));
                Mail.awaitDepth(p.url(), queue, 0);
                p.kill();
                if (p == pair.a) {
                    Mail.await("at the other", () -> pair.b.url().equals(at(c)));
                }
            }
            pair.a.start();
            Mail.await("at the first again", () -> pair.a.url().equals(at(c)));
        }
    }

    /**
     * R-CLIENT-60, R-EDGE-05: a client is moved in the middle of a transaction. Its commit fails, what it had is
     * charged, what it had only prefetched is not, and what it sent is nowhere.
     */
    @Test
    void moved_in_a_transaction() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        try (Pair pair = new Pair(REBALANCE); Client c = Client.open(pair.onlyA(""))) {
            move(pair, c, pair.a);
            Mail.send(pair.a.url(), in, "m0", "m1", "m2");
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, in);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(s, out, "forwarded");
            move(pair, c, pair.b);
            assertThrows(TransactionRolledBackException.class, s::commit);
            s.rollback();
            Mail.none(consumer);
            for (BrokerProcess p : List.of(pair.a, pair.b)) {
                assertEquals(0, Mail.browse(p.url(), out).size(), "sent in the rolled back transaction");
                Mail.deadLetters(p.url(), in, 0);
            }
            assertEquals("m0#2!", Mail.take(pair.a.url(), in, 3).get(0));
            Mail.send(s, out, "again"); // it works on where it is
            s.commit();
            assertEquals(List.of("again#1"), Mail.take(pair.b.url(), out, 1));
        }
    }

    /** R-EDGE-05: what was only prefetched when its client was moved counts as no failure. */
    @Test
    void only_prefetched_is_not_charged() throws Exception {
        String queue = Mail.unique("prefetched");
        try (Pair pair = new Pair(REBALANCE); Client c = Client.open(pair.onlyA(""))) {
            move(pair, c, pair.a);
            Mail.send(pair.a.url(), queue, Mail.numbered(20));
            MessageConsumer consumer = Client.consumer(c.transacted(), queue);
            for (int i = 0; i < 5; i++) { // a move each way costs nothing, however often
                move(pair, c, pair.b);
                move(pair, c, pair.a);
            }
            consumer.close();
            List<String> got = Mail.take(pair.a.url(), queue, 20);
            for (int i = 0; i < 20; i++) {
                assertTrue(got.get(i).matches("m" + i + "#[12]!?"), got.toString()); // 2: handed out with unknown fate, told once
            }
            Mail.deadLetters(pair.a.url(), queue, 0);
        }
    }

    /** R-EDGE-09: moved away and back with a message in hand; it is not lost, and not dead as a "duplicate". */
    @ParameterizedTest
    @ValueSource(ints = {Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED, INDIVIDUAL})
    void moved_there_and_back(int mode) throws Exception {
        String queue = Mail.unique("back");
        try (Pair pair = new Pair(REBALANCE); Client c = Client.open(pair.onlyA(""))) {
            move(pair, c, pair.a);
            Mail.send(pair.a.url(), queue, "m0", "m1", "m2");
            Session s = c.session(mode);
            MessageConsumer consumer = Client.consumer(s, queue);
            Message first = Mail.must(consumer);
            assertEquals("m0#1", Mail.label(first));
            move(pair, c, pair.b);
            move(pair, c, pair.a);
            if (mode == Session.SESSION_TRANSACTED) {
                assertThrows(TransactionRolledBackException.class, s::commit);
            }
            List<String> got = new ArrayList<>();
            for (Message m = Mail.must(consumer); m != null; m = consumer.receive(got.containsAll(List.of("m1", "m2")) ? 1000 : Mail.SOON)) {
                got.add(Mail.body(m));
                if (mode == Session.SESSION_TRANSACTED) {
                    s.commit();
                } else {
                    m.acknowledge();
                }
            }
            assertTrue(got.containsAll(List.of("m1", "m2")), got.toString());
            consumer.close();
            got.addAll(Mail.bodies(rest(pair.a.url(), queue)));
            assertTrue(got.contains("m0"), got.toString());
            Mail.deadLetters(pair.a.url(), queue, 0);
        }
    }

    private static List<Message> rest(String url, String queue) throws JMSException {
        try (Client c = Client.open(url)) {
            List<Message> out = new ArrayList<>();
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            while (!Mail.browse(url, queue).isEmpty()) {
                for (Message m = consumer.receive(Mail.QUIET); m != null; m = consumer.receive(Mail.QUIET)) {
                    out.add(m);
                }
            }
            return out;
        }
    }

    /** A client that waits to redeliver a message by itself is moved: the message has failed once for that, and once for the move. */
    @Test
    void moved_while_a_redelivery_waits() throws Exception {
        String queue = Mail.unique("waits");
        try (Pair pair = new Pair(REBALANCE);
                Client c = Client.to(pair.onlyA("")).policy(p -> p.setInitialRedeliveryDelay(60_000)).open()) {
            move(pair, c, pair.a);
            Mail.send(pair.a.url(), queue, "m0", "m1");
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            move(pair, c, pair.b);
            List<String> got = Mail.take(pair.a.url(), queue, 2);
            assertEquals("m0#2!", got.get(0), "the attempt that was only announced is none");
            assertTrue(got.get(1).startsWith("m1#"), got.toString());
            Mail.deadLetters(pair.a.url(), queue, 0);
            Mail.none(consumer);
        }
    }

    /** A durable subscription is one on each broker: what it missed while it was elsewhere waits for it, each message once. */
    @Test
    void durable_subscription_moves() throws Exception {
        String topic = Mail.unique("topic");
        try (Pair pair = new Pair(REBALANCE);
                Client c = Client.to(pair.onlyA("")).clientId(Mail.unique("client")).open()) {
            move(pair, c, pair.a);
            Session s = c.transacted();
            MessageConsumer consumer = s.createDurableSubscriber(s.createTopic(topic), "sub");
            Mail.send(pair.a.url(), "topic://" + topic, "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.commit();
            move(pair, c, pair.b);
            Mail.send(pair.a.url(), "topic://" + topic, "m1");
            Mail.send(pair.b.url(), "topic://" + topic, "m2");
            assertEquals("m2#1", Mail.label(Mail.must(consumer)));
            s.commit();
            Mail.none(consumer);
            move(pair, c, pair.a);
            assertEquals("m1#1", Mail.label(Mail.must(consumer)));
            s.commit();
            Mail.none(consumer);
        }
    }

    /** Producers and consumers at work while they are moved about: every message is sent, each is taken, on whichever broker. */
    @Test
    void work_goes_on_while_clients_move() throws Exception {
        String queue = Mail.unique("work");
        int total = 300;
        try (Pair pair = new Pair(REBALANCE); Client to = Client.open(pair.both("")); Client from = Client.open(pair.both(""))) {
            List<String> got = new ArrayList<>(); // or in doubt: the answer to the commit was lost
            Session s = from.transacted();
            Client.consumer(s, queue).setMessageListener(m -> {
                try {
                    synchronized (got) {
                        got.add(Mail.body(m));
                    }
                    s.commit();
                } catch (JMSException e) {
                    try {
                        s.rollback();
                    } catch (JMSException again) {
                        throw new IllegalStateException(again);
                    }
                }
            });
            Session out = to.auto();
            for (int i = 0; i < total; i++) {
                Mail.send(out, queue, "m" + i);
                if (i % 50 == 25) {
                    pair.push(i % 100 == 25 ? pair.a : pair.b);
                }
            }
            Thread.sleep(500);
            from.close();
            for (BrokerProcess p : List.of(pair.a, pair.b)) {
                got.addAll(Mail.bodies(rest(p.url(), queue)));
                Mail.deadLetters(p.url(), queue, 0);
            }
            List<String> missing = new ArrayList<>(Arrays.asList(Mail.numbered(total)));
            missing.removeAll(got);
            assertEquals(List.of(), missing);
        }
    }
}

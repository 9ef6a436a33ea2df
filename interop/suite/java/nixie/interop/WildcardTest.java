package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.InvalidDestinationException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TransactionRolledBackException;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAResource;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Consumers of several queues or topics, by a wildcard or a list of names. An acknowledgement of such a
 * consumer is a range over all that it has, whichever queues that came from.
 */
class WildcardTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    /** Three queues, and the destination that stands for them. */
    private record Places(List<String> queues, String all) {
        static Places of(String kind) {
            String base = Mail.unique("many");
            List<String> queues = List.of(base + ".a", base + ".b.c", base + ".d");
            return new Places(queues, switch (kind) {
                case "list" -> String.join(",", queues);
                case "both" -> base + ".*," + base + ".b.*";
                default -> base + ".>";
            });
        }

        /** m0 to a, m1 to b.c, m2 to d, m3 to a, ... */
        void send(int n) throws Exception {
            try (Client c = Client.open(broker.url())) {
                Session s = c.auto();
                for (int i = 0; i < n; i++) {
                    Mail.send(s, queues.get(i % queues.size()), "m" + i);
                }
            }
        }

        void empty() throws Exception {
            for (String queue : queues) {
                Mail.awaitDepth(broker.url(), queue, 0);
            }
        }
    }

    private static TreeSet<String> labels(String suffix, int n) {
        TreeSet<String> out = new TreeSet<>();
        for (int i = 0; i < n; i++) {
            out.add("m" + i + suffix);
        }
        return out;
    }

    private static TreeSet<String> receive(MessageConsumer c, int n) throws Exception {
        TreeSet<String> out = new TreeSet<>();
        for (int i = 0; i < n; i++) {
            out.add(Mail.label(Mail.must(c)));
        }
        Mail.none(c);
        return out;
    }

    @ParameterizedTest
    @ValueSource(strings = {"wildcard", "list", "both"})
    void transacted(String kind) throws Exception {
        Places places = Places.of(kind);
        places.send(9);
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            assertEquals(labels("#1", 9), receive(consumer, 9));
            s.rollback();
            assertEquals(labels("#2!", 9), receive(consumer, 9));
            s.commit();
        }
        places.empty();
    }

    /** Everything that is acknowledged at once, from whichever queue, is gone; the rest comes again. */
    @ParameterizedTest
    @CsvSource({"wildcard,2", "wildcard,3", "wildcard,4", "list,2", "list,3", "list,4"})
    void acknowledged_by_session(String kind, int mode) throws Exception {
        Places places = Places.of(kind);
        places.send(9);
        TreeSet<String> all = labels("", 9);
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(mode);
            MessageConsumer consumer = Client.consumer(s, places.all);
            List<Message> had = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                Message m = Mail.must(consumer);
                had.add(m);
                all.remove(Mail.body(m));
            }
            if (mode == ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE) {
                for (Message m : had) {
                    m.acknowledge();
                }
            } else if (mode == Session.CLIENT_ACKNOWLEDGE) {
                had.get(4).acknowledge();
            }
        }
        TreeSet<String> left = new TreeSet<>();
        for (String queue : places.queues) {
            for (Message m : Mail.browse(broker.url(), queue)) {
                left.add(Mail.body(m));
            }
        }
        assertEquals(all, left);
    }

    /** recover() brings back all that was not acknowledged, of all queues, and counts it. */
    @Test
    void recover() throws Exception {
        Places places = Places.of("wildcard");
        places.send(6);
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = Client.consumer(s, places.all);
            assertEquals(labels("#1", 6), receive(consumer, 6));
            s.recover();
            assertEquals(labels("#2!", 6), receive(consumer, 6));
            s.recover();
            for (int i = 0; i < 6; i++) {
                Message m = Mail.must(consumer);
                assertEquals(3, Mail.count(m));
                if (i == 5) {
                    m.acknowledge();
                }
            }
        }
        places.empty();
    }

    /** Rolled back beyond the limit, each becomes a dead letter of the queue it came from. */
    @Test
    void dead_letters() throws Exception {
        Places places = Places.of("wildcard");
        places.send(3);
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            for (int round = 0; round < 2; round++) {
                for (int i = 0; i < 3; i++) {
                    Mail.must(consumer);
                }
                s.rollback();
            }
            Mail.none(consumer);
        }
        for (int i = 0; i < 3; i++) {
            assertEquals(List.of("m" + i), Mail.bodies(Mail.deadLetters(broker.url(), places.queues.get(i), 1)));
        }
        places.empty();
    }

    /** What a consumer had when it closed comes again, counted, wherever it came from (R-CNT-04). */
    @Test
    @Reference.Beyond("R-CNT-03: positions are compared that each queue numbers for itself")
    void closed() throws Exception {
        Places places = Places.of("wildcard");
        places.send(6);
        try (Client c = Client.open(broker.url())) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            assertEquals(labels("#1", 6), receive(Client.consumer(s, places.all), 6));
        }
        try (Client c = Client.open(broker.url())) {
            assertEquals(labels("#2!", 6), receive(Client.consumer(c.auto(), places.all), 6));
        }
    }

    /** A queue that comes to be later is covered too, also within the transaction that is open. */
    @Test
    void a_queue_that_comes_later() throws Exception {
        String base = Mail.unique("later");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, base + ".>");
            Mail.send(broker.url(), base + ".a", "m0");
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(broker.url(), base + ".b", "m1");
            assertEquals("m1#1", Mail.label(Mail.must(consumer)));
            Mail.send(broker.url(), base, "m2"); // the arrow stands for no step as well
            assertEquals("m2#1", Mail.label(Mail.must(consumer)));
            s.commit();
            Mail.send(broker.url(), base + ".a", "m3");
            assertEquals("m3#1", Mail.label(Mail.must(consumer)));
            s.commit();
        }
        for (String queue : List.of(base + ".a", base + ".b", base)) {
            Mail.awaitDepth(broker.url(), queue, 0);
        }
    }

    /** Consumers by wildcard and by name compete: each message goes to one of them. */
    @Test
    void beside_a_consumer_of_one_queue() throws Exception {
        Places places = Places.of("wildcard");
        try (Client c = Client.to(broker.url()).prefetch(1).open()) {
            MessageConsumer all = Client.consumer(c.auto(), places.all);
            MessageConsumer one = Client.consumer(c.auto(), places.queues.get(0));
            Mail.send(broker.url(), places.queues.get(0), Mail.numbered(4));
            TreeSet<String> got = new TreeSet<>();
            got.add(Mail.label(Mail.must(all)));
            got.add(Mail.label(Mail.must(one)));
            got.add(Mail.label(Mail.must(all)));
            got.add(Mail.label(Mail.must(one)));
            assertEquals(labels("#1", 4), got);
            Mail.none(all);
            Mail.none(one);
        }
        places.empty();
    }

    @Test
    void with_a_selector() throws Exception {
        Places places = Places.of("wildcard");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer some = s.createConsumer(Client.destination(places.all), "origin LIKE '%.a' OR origin LIKE '%.d'");
            places.send(6);
            TreeSet<String> want = labels("#1", 6);
            want.remove("m1#1");
            want.remove("m4#1");
            assertEquals(want, receive(some, 4));
            s.commit();
        }
        assertEquals(List.of("m1#1", "m4#1"), Mail.take(broker.url(), places.queues.get(1), 2));
        Mail.awaitDepth(broker.url(), places.queues.get(0), 0);
    }

    /** A pull consumer asks all its queues, and is given one message at a time. */
    @Test
    void pulled() throws Exception {
        Places places = Places.of("wildcard");
        places.send(6);
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            TreeSet<String> got = new TreeSet<>();
            for (int i = 0; i < 4; i++) {
                got.add(Mail.label(Mail.must(consumer)));
            }
            s.commit();
            for (int i = 0; i < 2; i++) {
                got.add(Mail.label(Mail.must(consumer)));
            }
            assertEquals(labels("#1", 6), got);
            assertEquals(null, consumer.receiveNoWait());
            assertEquals(null, consumer.receive(100));
            s.commit();
        }
        places.empty();
    }

    /** What it does not ask for goes to others, and nothing that it was told of before makes it come back empty. */
    @Test
    void pulls_one_at_a_time() throws Exception {
        Places places = Places.of("wildcard");
        places.send(3);
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            Session s = c.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = Client.consumer(s, places.all);
            Message first = Mail.must(consumer);
            List<String> others = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                if (!Mail.body(first).equals("m" + i)) {
                    others.addAll(Mail.take(broker.url(), places.queues.get(i), 1));
                }
            }
            assertEquals(2, others.size(), "taken by others: " + others);
            first.acknowledge();
            assertEquals(null, consumer.receive(100));
            assertEquals(null, consumer.receiveNoWait());
            for (int i = 0; i < 6; i++) {
                Mail.send(broker.url(), places.queues.get(i % 3), "n" + i);
                assertEquals("n" + i + "#1", Mail.label(Mail.must(consumer)));
            }
        }
    }

    /** A pull that waits for a queue which does not exist yet. */
    @Test
    void pulls_from_no_queue_yet() throws Exception {
        String base = Mail.unique("unborn");
        try (Client c = Client.to(broker.url()).prefetch(0).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), base + ".*");
            assertEquals(null, consumer.receive(100));
            assertEquals(null, consumer.receiveNoWait());
            Thread sender = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    Mail.send(broker.url(), base + ".a", "m0");
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            sender.start();
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            sender.join();
        }
    }

    /** A transaction may be larger than the window. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 10})
    void a_window_smaller_than_the_transaction(int prefetch) throws Exception {
        Places places = Places.of("wildcard");
        places.send(60);
        try (Client c = Client.to(broker.url()).prefetch(prefetch).open()) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            for (String suffix : List.of("#1", "#2!")) {
                TreeSet<String> got = new TreeSet<>();
                for (int i = 0; i < 60; i++) {
                    got.add(Mail.label(Mail.must(consumer)));
                }
                assertEquals(labels(suffix, 60), got);
                if (suffix.equals("#1")) {
                    s.rollback();
                } else {
                    s.commit();
                }
            }
        }
        places.empty();
    }

    /** Acknowledgements that the client puts off until there are many of them. */
    @Test
    void optimized_acknowledgements() throws Exception {
        Places places = Places.of("wildcard");
        places.send(300);
        try (Client c = Client.to(broker.url()).factory(f -> f.setOptimizeAcknowledge(true)).open()) {
            MessageConsumer consumer = Client.consumer(c.auto(), places.all);
            TreeSet<String> got = new TreeSet<>();
            for (int i = 0; i < 300; i++) {
                got.add(Mail.label(Mail.must(consumer)));
            }
            assertEquals(labels("#1", 300), got);
            consumer.close();
        }
        places.empty();
    }

    /** R-CLIENT-62: a transaction over a cut is rolled back as a whole; then all comes again, and can be committed. */
    @Test
    void over_a_cut() throws Exception {
        Places places = Places.of("wildcard");
        places.send(6);
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
             Client c = Client.open("failover:(" + proxy.url() + ")?initialReconnectDelay=10&useExponentialBackOff=false&randomize=false")) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            for (int i = 0; i < 4; i++) {
                Mail.must(consumer);
            }
            CountDownLatch noticed = c.noticesCut();
            proxy.cut();
            assertTrue(noticed.await(Mail.SOON, TimeUnit.MILLISECONDS));
            assertThrows(TransactionRolledBackException.class, s::commit);
            TreeSet<String> got = new TreeSet<>();
            for (int i = 0; i < 6; i++) {
                got.add(Mail.body(Mail.must(consumer)));
            }
            assertEquals(labels("", 6), got);
            s.commit();
            Mail.none(consumer);
        }
        places.empty();
    }

    /** A distributed transaction over all of them. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void distributed(boolean commit) throws Exception {
        Places places = Places.of("list");
        places.send(6);
        ActiveMQXAConnectionFactory factory = new ActiveMQXAConnectionFactory(broker.url());
        factory.getRedeliveryPolicy().setInitialRedeliveryDelay(0);
        XAConnection connection = factory.createXAConnection();
        try {
            connection.start();
            XASession session = connection.createXASession();
            XAResource resource = session.getXAResource();
            MessageConsumer consumer = Client.consumer(session, places.all);
            XATest.Branch xid = new XATest.Branch();
            resource.start(xid, XAResource.TMNOFLAGS);
            for (int i = 0; i < 5; i++) {
                Mail.must(consumer);
            }
            resource.end(xid, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, resource.prepare(xid));
            if (commit) {
                resource.commit(xid, false);
            } else {
                resource.rollback(xid);
            }
        } finally {
            connection.close();
        }
        int left = 0;
        for (String queue : places.queues) {
            left += Mail.browse(broker.url(), queue).size();
        }
        assertEquals(commit ? 1 : 6, left);
    }

    /** Copies of one message in several queues are as many messages, though they have one id (R-VT-05). */
    @ParameterizedTest
    @ValueSource(strings = {"wildcard", "list"})
    @Reference.Beyond("a range is looked up by ids, which the copies share")
    void copies_of_one_message(String kind) throws Exception {
        Places places = Places.of(kind);
        Mail.send(broker.url(), String.join(",", places.queues), "m0");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer consumer = Client.consumer(s, places.all);
            for (String want : List.of("m0#1", "m0#2!")) {
                TreeSet<String> from = new TreeSet<>();
                for (int i = 0; i < 3; i++) {
                    Message m = Mail.must(consumer);
                    assertEquals(want, Mail.label(m));
                    from.add(((org.apache.activemq.command.ActiveMQDestination) m.getJMSDestination()).getPhysicalName());
                }
                assertEquals(new TreeSet<>(places.queues), from);
                Mail.none(consumer);
                if (want.equals("m0#1")) {
                    s.rollback();
                } else {
                    s.commit();
                }
            }
        }
        places.empty();
    }

    /** A browser shows what all the queues have, and changes nothing. */
    @ParameterizedTest
    @ValueSource(strings = {"wildcard", "list", "both"})
    void browsed(String kind) throws Exception {
        Places places = Places.of(kind);
        places.send(9);
        try (Client c = Client.to(broker.url()).prefetch(2).open()) {
            Session s = c.auto();
            for (int round = 0; round < 2; round++) {
                assertEquals(labels("", 9), new TreeSet<>(Mail.bodies(Mail.browse(s, places.all, null))));
            }
            assertEquals(List.of("m1", "m4", "m7"), Mail.bodies(Mail.browse(s, places.all, "origin LIKE '%.b.c'")));
            assertEquals(labels("#1", 9), receive(Client.consumer(s, places.all), 9));
        }
    }

    /** Queues and topics cannot be consumed together: ActiveMQ takes the kind of the first, and leaves the rest out without a word. */
    @Test
    @Reference.Beyond("half of the list is left out")
    void queues_with_topics() throws Exception {
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            assertThrows(InvalidDestinationException.class, () -> Client.consumer(s, Mail.unique("q") + ",topic://" + Mail.unique("t")));
        }
    }

    /** Nobody sends to a wildcard: ActiveMQ makes a queue of that name, which consumers of others are given, too. */
    @ParameterizedTest
    @ValueSource(strings = {"*", "*,other", ">"})
    @Reference.Beyond("what is sent to a wildcard goes to whoever came first")
    void sent_to(String wildcard) throws Exception {
        String base = Mail.unique("sent");
        for (String kind : List.of("", "topic://")) {
            assertThrows(InvalidDestinationException.class, () -> Mail.send(broker.url(), kind + base + "." + wildcard, "m"));
        }
        assertFalse(new Operator(broker.process()).look("destinations").contains(base));
    }

    /** A durable subscription to a wildcard, or a list, of topics: one subscription, all or nothing with its session. */
    @ParameterizedTest
    @ValueSource(strings = {">", "*"})
    void durable(String wildcard) throws Exception {
        String base = Mail.unique("news");
        String id = Mail.unique("client");
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.auto();
            s.createDurableSubscriber(s.createTopic(base + "." + wildcard), "sub").close();
        }
        Mail.send(broker.url(), "topic://" + base + ".a", "m0");
        Mail.send(broker.url(), "topic://" + base + ".b", "m1");
        try (Client c = Client.to(broker.url()).clientId(id).open()) {
            Session s = c.transacted();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(base + "." + wildcard), "sub");
            assertEquals(labels("#1", 2), receive(sub, 2));
            s.rollback();
            Mail.send(broker.url(), "topic://" + base + ".c", "m2");
            TreeSet<String> want = labels("#2!", 2);
            want.add("m2#1");
            assertEquals(want, receive(sub, 3));
            s.commit();
            sub.close();
            s.unsubscribe("sub");
        }
    }

    /** A subscriber of several topics. */
    @Test
    void topics() throws Exception {
        String base = Mail.unique("topics");
        try (Client c = Client.open(broker.url())) {
            Session s = c.transacted();
            MessageConsumer list = Client.consumer(s, "topic://" + base + ".a,topic://" + base + ".b");
            MessageConsumer middle = Client.consumer(c.auto(), "topic://" + base.replaceFirst("topics", "*") + ".a");
            Mail.send(broker.url(), "topic://" + base + ".a", "m0");
            Mail.send(broker.url(), "topic://" + base + ".b", "m1");
            Mail.send(broker.url(), "topic://" + base + ".c", "m2");
            assertEquals(labels("#1", 2), receive(list, 2));
            s.rollback();
            assertEquals(labels("#2!", 2), receive(list, 2));
            s.commit();
            assertEquals(labels("#1", 1), receive(middle, 1));
        }
    }
}

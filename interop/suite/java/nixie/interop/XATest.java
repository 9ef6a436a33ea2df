package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Distributed transactions, as a transaction manager drives them. */
class XATest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static final AtomicInteger COUNT = new AtomicInteger();

    /** A branch of a transaction of its own, with bytes that look like nothing else. */
    static final class Branch implements Xid {
        private final byte[] global;
        private final byte[] branch = {1, 0, (byte) 0xff};

        Branch() {
            global = ("nixie " + System.nanoTime() + " " + COUNT.incrementAndGet() + " \0\u00ff").getBytes();
        }

        @Override public int getFormatId() {
            return 131075;
        }

        @Override public byte[] getGlobalTransactionId() {
            return global;
        }

        @Override public byte[] getBranchQualifier() {
            return branch;
        }

        boolean is(Xid other) {
            return other.getFormatId() == getFormatId() && Arrays.equals(other.getGlobalTransactionId(), global)
                && Arrays.equals(other.getBranchQualifier(), branch);
        }
    }

    /** A started XA connection with one session. */
    private static final class XA implements AutoCloseable {
        final XAConnection connection;
        final XASession session;
        final XAResource resource;

        XA(String url) throws JMSException {
            ActiveMQXAConnectionFactory factory = new ActiveMQXAConnectionFactory(url);
            factory.getRedeliveryPolicy().setInitialRedeliveryDelay(0);
            factory.getRedeliveryPolicy().setRedeliveryDelay(0);
            connection = factory.createXAConnection();
            connection.start();
            session = connection.createXASession();
            resource = session.getXAResource();
        }

        MessageConsumer consumer(String name) throws JMSException {
            return Client.consumer(session, name);
        }

        boolean lists(Branch x) throws XAException {
            return Stream.of(resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)).anyMatch(x::is);
        }

        @Override public void close() throws JMSException {
            connection.close();
        }
    }

    private static int code(XAException e) {
        return e.errorCode;
    }

    /** A queue in, a queue and a durable topic subscription out: nothing is seen before the commit, all of it after. */
    @Test
    void two_phase_over_queue_and_topic() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        String topic = Mail.unique("topic");
        String id = Mail.unique("client");
        Mail.send(broker.url(), in, "m0", "m1");
        try (Client c = Client.to(broker.url()).clientId(id).open(); XA xa = new XA(broker.url())) {
            Session s = c.auto();
            MessageConsumer sub = s.createDurableSubscriber(s.createTopic(topic), "sub");
            MessageConsumer consumer = xa.consumer(in);
            Branch x = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(xa.session, out, "o0");
            Mail.send(xa.session, "topic://" + topic, "t0");
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
            assertEquals(true, xa.lists(x));
            assertEquals(0, Mail.browse(broker.url(), out).size());
            Mail.none(sub);
            xa.resource.commit(x, false);
            assertEquals(false, xa.lists(x));
            assertEquals("t0#1", Mail.label(Mail.must(sub)));
        }
        assertEquals(List.of("o0#1"), Mail.take(broker.url(), out, 1));
        assertEquals(List.of("m1#1"), Mail.take(broker.url(), in, 1));
    }

    @Test
    void one_phase() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        try (XA xa = new XA(broker.url())) {
            MessageConsumer consumer = xa.consumer(in);
            Branch x = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            Mail.must(consumer);
            Mail.send(xa.session, out, "o0");
            xa.resource.end(x, XAResource.TMSUCCESS);
            xa.resource.commit(x, true);
        }
        assertEquals(List.of("o0#1"), Mail.take(broker.url(), out, 1));
        assertEquals(List.of(), Mail.take(broker.url(), in, 0));
    }

    /** Rolled back before its prepare, then after it: the client redelivers by itself, with the count. */
    @Test
    void rollback() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        try (XA xa = new XA(broker.url())) {
            MessageConsumer consumer = xa.consumer(in);
            for (int round = 1; round <= 3; round++) {
                Branch x = new Branch();
                xa.resource.start(x, XAResource.TMNOFLAGS);
                assertEquals("m0#" + round + (round > 1 ? "!" : ""), Mail.label(Mail.must(consumer)));
                Mail.send(xa.session, out, "o" + round);
                xa.resource.end(x, XAResource.TMSUCCESS);
                if (round != 1) {
                    assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
                }
                if (round < 3) {
                    xa.resource.rollback(x);
                } else {
                    xa.resource.commit(x, false);
                }
            }
        }
        assertEquals(List.of("o3#1"), Mail.take(broker.url(), out, 1));
        assertEquals(List.of(), Mail.take(broker.url(), in, 0));
    }

    /** Two transactions take turns on one session. */
    @Test
    void suspend_and_resume() throws Exception {
        String a = Mail.unique("a");
        String b = Mail.unique("b");
        try (XA xa = new XA(broker.url())) {
            Branch x = new Branch();
            Branch y = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            Mail.send(xa.session, a, "a0");
            xa.resource.end(x, XAResource.TMSUSPEND);
            xa.resource.start(y, XAResource.TMNOFLAGS);
            Mail.send(xa.session, b, "b0");
            xa.resource.end(y, XAResource.TMSUCCESS);
            xa.resource.start(x, XAResource.TMRESUME);
            Mail.send(xa.session, a, "a1");
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
            assertEquals(XAResource.XA_OK, xa.resource.prepare(y));
            xa.resource.rollback(y);
            xa.resource.commit(x, false);
        }
        assertEquals(List.of("a0#1", "a1#1"), Mail.take(broker.url(), a, 2));
        assertEquals(List.of(), Mail.take(broker.url(), b, 0));
    }

    /** One transaction over two connections: the second joins. */
    @Test
    void join() throws Exception {
        String a = Mail.unique("a");
        try (XA one = new XA(broker.url()); XA two = new XA(broker.url())) {
            Branch x = new Branch();
            one.resource.start(x, XAResource.TMNOFLAGS);
            Mail.send(one.session, a, "a0");
            one.resource.end(x, XAResource.TMSUCCESS);
            two.resource.start(x, XAResource.TMJOIN);
            Mail.send(two.session, a, "a1");
            two.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, two.resource.prepare(x));
            one.resource.commit(x, false);
        }
        assertEquals(List.of("a0#1", "a1#1"), Mail.take(broker.url(), a, 2));
    }

    @Test
    void read_only() throws Exception {
        try (XA xa = new XA(broker.url())) {
            Branch x = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_RDONLY, xa.resource.prepare(x));
            assertEquals(XAException.XAER_NOTA, code(assertThrows(XAException.class, () -> xa.resource.commit(x, false))));
        }
    }

    /** The codes that a transaction manager reads. */
    @Test
    void codes() throws Exception {
        try (XA xa = new XA(broker.url())) {
            Branch x = new Branch();
            assertEquals(XAException.XAER_NOTA, code(assertThrows(XAException.class, () -> xa.resource.prepare(x))));
            assertEquals(XAException.XAER_NOTA, code(assertThrows(XAException.class, () -> xa.resource.rollback(x))));
            assertEquals(Reference.or(XAException.XAER_NOTA, XAException.XAER_RMFAIL), // ActiveMQ's is no XAException
                code(assertThrows(XAException.class, () -> xa.resource.forget(x))));
            xa.resource.start(x, XAResource.TMNOFLAGS);
            Mail.send(xa.session, Mail.unique("a"), "a0");
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAException.XAER_PROTO, code(assertThrows(XAException.class, () -> xa.resource.commit(x, false))));
            xa.resource.rollback(x);
            assertEquals(0, xa.resource.recover(XAResource.TMSTARTRSCAN).length);
        }
    }

    /** A heuristic outcome: someone ends a prepared transaction by the admin API; its manager is told, and forgets it. */
    @ParameterizedTest
    @ValueSource(strings = {"commit", "rollback"})
    @Reference.Beyond("needs the admin API")
    void ended_by_hand(String how) throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        try (XA xa = new XA(broker.url())) {
            Branch x = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            Mail.must(xa.consumer(in));
            Mail.send(xa.session, out, "m1");
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
            HexFormat hex = HexFormat.of();
            String id = "XID:[" + x.getFormatId() + ",globalId=" + hex.formatHex(x.getGlobalTransactionId()) + ",branchId=" + hex.formatHex(x.getBranchQualifier()) + "]";
            assertTrue(admin("GET", "").contains(id), "it is listed");
            admin("POST", "/" + URLEncoder.encode(id, StandardCharsets.UTF_8) + "/" + how);
            boolean committed = how.equals("commit");
            Mail.awaitDepth(broker.url(), out, committed ? 1 : 0);
            Mail.awaitDepth(broker.url(), in, committed ? 0 : 1);
            assertEquals(true, xa.lists(x), "its manager is still to be told");
            assertEquals(committed ? XAException.XA_HEURCOM : XAException.XA_HEURRB,
                code(assertThrows(XAException.class, () -> xa.resource.commit(x, false))));
            assertEquals(true, admin("GET", "").contains(id), "not forgotten yet");
            xa.resource.forget(x);
            assertEquals(false, admin("GET", "").contains(id));
            assertEquals(false, xa.lists(x));
        }
    }

    /** Asks the admin API about transactions. */
    private static String admin(String method, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(broker.process().admin() + "/api/v1/transactions" + path))
            .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.noBody()).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        return answer.body();
    }

    /** transactionTimeout: one that takes too long is rolled back, what it had is given back and counted, and its manager is told. */
    @Test
    @Reference.Beyond("ActiveMQ has no time limit")
    void times_out() throws Exception {
        try (BrokerProcess own = new BrokerProcess("timeout", Broker.resource("transaction-timeout.yaml")).start()) {
            String in = Mail.unique("in");
            String out = Mail.unique("out");
            Mail.send(own.url(), in, "m0");
            try (XA xa = new XA(own.url())) {
                Branch x = new Branch();
                MessageConsumer consumer = xa.consumer(in);
                xa.resource.start(x, XAResource.TMNOFLAGS);
                Mail.must(consumer);
                Mail.send(xa.session, out, "never");
                xa.resource.end(x, XAResource.TMSUCCESS); // which tells the broker what was received
                Thread.sleep(2500);
                assertEquals(XAException.XA_RBTIMEOUT, code(assertThrows(XAException.class, () -> xa.resource.prepare(x))));
                assertEquals(0, xa.resource.recover(XAResource.TMSTARTRSCAN).length);
            }
            assertEquals(List.of("m0#2!"), Mail.take(own.url(), in, 1));
            assertEquals(0, Mail.browse(own.url(), out).size());
        }
    }

    /** What was not prepared goes with its connection, and its messages come back, counted once. */
    @Test
    @Reference.Beyond("ActiveMQ counts what was delivered by its own rules")
    void connection_dies_before_prepare() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        XA xa = new XA(broker.url());
        Branch x = new Branch();
        MessageConsumer consumer = xa.consumer(in);
        xa.resource.start(x, XAResource.TMNOFLAGS);
        Mail.must(consumer);
        Mail.send(xa.session, out, "o0");
        xa.resource.end(x, XAResource.TMSUCCESS);
        Client.abandon((ActiveMQConnection) xa.connection);
        assertEquals(List.of("m0#2!"), Mail.take(broker.url(), in, 1));
        assertEquals(List.of(), Mail.take(broker.url(), out, 0));
        try (XA next = new XA(broker.url())) {
            assertEquals(XAException.XAER_NOTA, code(assertThrows(XAException.class, () -> next.resource.prepare(x))));
        }
    }

    /** A prepared transaction stays prepared without its connection; nobody is given what it took. */
    @Test
    void connection_dies_after_prepare() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        XA xa = new XA(broker.url());
        Branch x = new Branch();
        MessageConsumer consumer = xa.consumer(in);
        xa.resource.start(x, XAResource.TMNOFLAGS);
        Mail.must(consumer);
        Mail.send(xa.session, out, "o0");
        xa.resource.end(x, XAResource.TMSUCCESS);
        assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
        Client.abandon((ActiveMQConnection) xa.connection);
        assertEquals(List.of(), Mail.take(broker.url(), in, 0));
        try (XA next = new XA(broker.url())) {
            assertEquals(true, next.lists(x));
            next.resource.commit(x, false);
        }
        assertEquals(List.of(), Mail.take(broker.url(), in, 0));
        assertEquals(List.of("o0#1"), Mail.take(broker.url(), out, 1));
    }

    /** The connection is lost in the prepare or in the commit: all of it happens, once, or nothing does. */
    @ParameterizedTest
    @CsvSource({"prepare,lost reply", "prepare,lost request", "commit,lost reply", "commit,lost request"})
    @Reference.Beyond("ActiveMQ takes what a client repeats after a fail-over for new")
    void failover(String step, String what) throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        boolean done = true;
        try (CuttingProxy proxy = new CuttingProxy(broker.port());
                XA xa = new XA("failover:(" + proxy.url() + ")?initialReconnectDelay=50&useExponentialBackOff=false")) {
            MessageConsumer consumer = xa.consumer(in);
            Branch x = new Branch();
            xa.resource.start(x, XAResource.TMNOFLAGS);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(xa.session, out, "o0");
            xa.resource.end(x, XAResource.TMSUCCESS);
            if (step.equals("prepare")) {
                done = lose(proxy, what, () -> assertEquals(XAResource.XA_OK, xa.resource.prepare(x)));
            } else {
                assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
            }
            if (done) {
                if (step.equals("commit")) {
                    lose(proxy, what, () -> xa.resource.commit(x, false));
                } else {
                    xa.resource.commit(x, false);
                }
            }
            assertEquals(false, xa.lists(x));
        }
        assertEquals(!(step.equals("prepare") && what.equals("lost request")), done, "prepared");
        assertEquals(done ? List.of("o0#1") : List.of(), Mail.take(broker.url(), out, done ? 1 : 0));
        List<String> left = Mail.take(broker.url(), in, done ? 0 : 1);
        // The client may have had it once more, on its new connection.
        assertEquals(true, done ? left.isEmpty() : left.equals(List.of("m0#2!")) || left.equals(List.of("m0#3!")), left.toString());
    }

    private interface Step {
        void run() throws Exception;
    }

    /** Does a step whose request or reply is lost; false where the client is told that all was rolled back. */
    private static boolean lose(CuttingProxy proxy, String what, Step step) throws Exception {
        if (what.equals("lost reply")) {
            proxy.loseNextReply();
        } else {
            proxy.cutInsteadOfNextRequest();
        }
        try {
            step.run();
            return true;
        } catch (XAException e) {
            assertEquals(true, e.errorCode >= XAException.XA_RBBASE && e.errorCode <= XAException.XA_RBEND, "code " + e.errorCode + ": " + e);
            return false;
        }
    }

    /**
     * R-CLIENT-62: SIGKILL while a prepare has no answer. The client repeats the transaction to the next process, but
     * not what it had acknowledged in it: all of it happens, or nothing does.
     */
    @ParameterizedTest
    @CsvSource({"true,stalled", "false,stalled", "true,lost reply"})
    @Reference.Beyond("ActiveMQ takes what a client repeats after a fail-over for new, and prepares it without its acknowledgements")
    void kill_in_prepare(boolean sends, String what) throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        try (BrokerProcess own = Broker.own("xa-prepare")) {
            Mail.send(own.url(), in, "m0");
            boolean committed = false;
            try (CuttingProxy proxy = new CuttingProxy(URI.create(own.url()).getPort());
                    XA xa = new XA("failover:(" + proxy.url() + ")?initialReconnectDelay=50&useExponentialBackOff=false")) {
                MessageConsumer consumer = xa.consumer(in);
                Branch x = new Branch();
                xa.resource.start(x, XAResource.TMNOFLAGS);
                assertEquals("m0#1", Mail.label(Mail.must(consumer)));
                if (sends) {
                    Mail.send(xa.session, out, "o0");
                }
                xa.resource.end(x, XAResource.TMSUCCESS);
                if (what.equals("stalled")) {
                    proxy.stall(); // the broker does not hear of the prepare
                } else {
                    proxy.loseNextReply(); // it has prepared
                }
                CompletableFuture<Integer> vote = new CompletableFuture<>();
                Thread preparing = new Thread(() -> {
                    try {
                        vote.complete(xa.resource.prepare(x));
                    } catch (XAException e) {
                        vote.complete(-e.errorCode);
                    } catch (RuntimeException e) {
                        vote.completeExceptionally(e);
                    }
                });
                preparing.start();
                if (what.equals("stalled")) {
                    assertTrue(proxy.awaitHeld(Mail.SOON));
                } else {
                    assertTrue(proxy.awaitLost(1, Mail.SOON));
                }
                own.kill();
                proxy.cut();
                own.start();
                proxy.resume();
                int answer = vote.get(Mail.SOON, TimeUnit.MILLISECONDS);
                if (answer == XAResource.XA_OK) {
                    xa.resource.commit(x, false);
                    committed = true;
                } else {
                    assertTrue(answer <= -XAException.XA_RBBASE && answer >= -XAException.XA_RBEND, "answer " + answer);
                }
                assertEquals(false, xa.lists(x));
                assertEquals(0, xa.resource.recover(XAResource.TMSTARTRSCAN).length);
            }
            assertEquals(what.equals("lost reply"), committed);
            assertEquals(committed && sends ? List.of("o0#1") : List.of(), Mail.take(own.url(), out, committed && sends ? 1 : 0));
            List<String> left = Mail.take(own.url(), in, committed ? 0 : 1);
            assertTrue(committed ? left.isEmpty() : left.toString().matches("\\[m0#[23]!\\]"), left.toString());
            Mail.deadLetters(own.url(), in, 0);
        }
    }

    /** Two prepared transactions after SIGKILL: one is committed, the other rolled back, and a second kill changes nothing. */
    @Test
    void recover_after_kill() throws Exception {
        try (BrokerProcess own = Broker.own("xa")) {
            String in = Mail.unique("in");
            String out = Mail.unique("out");
            String topic = Mail.unique("topic");
            String id = Mail.unique("client");
            String large = "l".repeat(3 << 20); // beyond what a transaction keeps in memory
            try (Client c = Client.to(own.url()).clientId(id).open()) {
                Session s = c.auto();
                s.createDurableSubscriber(s.createTopic(topic), "sub").close();
            }
            Mail.send(own.url(), in, "m0", "m1", "m2");
            XA xa = new XA(own.url());
            Branch x = new Branch();
            Branch y = new Branch();
            MessageConsumer consumer = xa.consumer(in);
            for (Branch branch : List.of(x, y)) {
                xa.resource.start(branch, XAResource.TMNOFLAGS);
                Mail.must(consumer);
                Mail.send(xa.session, out, branch == x ? "x" : "y", large);
                Mail.send(xa.session, "topic://" + topic, branch == x ? "tx" : "ty");
                xa.resource.end(branch, XAResource.TMSUCCESS);
                assertEquals(XAResource.XA_OK, xa.resource.prepare(branch));
            }
            own.kill();
            Client.abandon((ActiveMQConnection) xa.connection);
            own.start();
            try (XA next = new XA(own.url())) {
                assertEquals(true, next.lists(x));
                assertEquals(true, next.lists(y));
                assertEquals(2, next.resource.recover(XAResource.TMSTARTRSCAN).length);
                assertEquals(Reference.or(List.of("m2#2!"), List.of("m2#1")), Mail.take(own.url(), in, 1)); // it was in a prefetch window
                assertEquals(List.of(), Mail.take(own.url(), out, 0));
                next.resource.commit(x, false);
                next.resource.rollback(y);
                assertEquals(0, next.resource.recover(XAResource.TMSTARTRSCAN).length);
            }
            own.kill();
            own.start();
            assertEquals(List.of("x#1", large + "#1"), Mail.take(own.url(), out, 2));
            assertEquals(Reference.or(List.of("m1#2!"), List.of("m1#1")), Mail.take(own.url(), in, 1));
            try (Client c = Client.to(own.url()).clientId(id).open()) {
                Session s = c.auto();
                assertEquals(List.of("tx#1"), Mail.drain(s.createDurableSubscriber(s.createTopic(topic), "sub"), 1));
            }
        }
    }

    /** One transaction over two sessions of one connection, as a container has them. */
    @Test
    void join_within_a_connection() throws Exception {
        String in = Mail.unique("in");
        String out = Mail.unique("out");
        Mail.send(broker.url(), in, "m0");
        try (XA xa = new XA(broker.url())) {
            XASession second = xa.connection.createXASession();
            assertTrue(xa.resource.isSameRM(second.getXAResource()));
            Branch x = new Branch();
            MessageConsumer consumer = xa.consumer(in);
            xa.resource.start(x, XAResource.TMNOFLAGS);
            second.getXAResource().start(x, XAResource.TMJOIN);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            Mail.send(second, out, "o0");
            second.getXAResource().end(x, XAResource.TMSUCCESS);
            xa.resource.end(x, XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, xa.resource.prepare(x));
            xa.resource.commit(x, false);
        }
        assertEquals(List.of("o0#1"), Mail.take(broker.url(), out, 1));
        assertEquals(List.of(), Mail.take(broker.url(), in, 0));
    }
}

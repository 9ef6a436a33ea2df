package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSException;
import jakarta.jms.MessageListener;
import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import jakarta.transaction.TransactionManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.messaginghub.pooled.jms.JmsPoolXAConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.transaction.jta.JtaTransactionManager;

/** Narayana over two brokers, by itself and under Spring. */
@Timeout(240)
class TransactionManagerTest {
    /** Another transaction manager's branch. */
    private record Foreign() implements Xid {
        @Override
        public int getFormatId() {
            return 4711;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return "another's".getBytes();
        }

        @Override
        public byte[] getBranchQualifier() {
            return "branch".getBytes();
        }

        static boolean is(Xid x) {
            return x.getFormatId() == 4711 && Arrays.equals(x.getGlobalTransactionId(), "another's".getBytes());
        }
    }

    /**
     * The application's process is gone at a point of its commit, and both brokers are killed. The next one recovers: it is
     * all done where the decision had been made, and nothing otherwise. What another transaction manager has prepared stays.
     */
    @ParameterizedTest
    @CsvSource({"nowhere, true", "first commit, true", "second commit, true", "second prepare, false"})
    void recovery(String halt, boolean committed) throws Exception {
        Path logs = Files.createTempDirectory("narayana");
        Path out = logs.resolve("out");
        String queue = Mail.unique("jta");
        try (BrokerProcess one = Broker.own("jta-one"); BrokerProcess two = Broker.own("jta-two")) {
            Mail.send(one.url(), queue, "m0");
            XAConnection other = new ActiveMQXAConnectionFactory(one.url()).createXAConnection();
            other.start();
            XASession s = other.createXASession();
            s.getXAResource().start(new Foreign(), XAResource.TMNOFLAGS);
            Mail.send(s, queue + ".foreign", "f0");
            s.getXAResource().end(new Foreign(), XAResource.TMSUCCESS);
            assertEquals(XAResource.XA_OK, s.getXAResource().prepare(new Foreign()));
            int code = Application.run(out, "forward", logs.resolve("store").toString(), one.url(), two.url(), queue, halt);
            assertEquals(halt.equals("nowhere") ? 0 : 9, code, Files.readString(out));
            one.kill();
            two.kill();
            Client.abandon(other);
            one.start();
            two.start();
            if (!halt.equals("nowhere")) {
                assertEquals(List.of(), Mail.take(one.url(), queue, 0), "it is in doubt, and given to nobody");
                assertEquals(0, Application.run(out, "recover", logs.resolve("store").toString(), one.url(), two.url(), queue, ""), Files.readString(out));
            }
            List<String> done = committed ? List.of("done: m0#1") : List.of();
            assertEquals(done, Mail.take(one.url(), queue + ".out", done.size()), Files.readString(out));
            assertEquals(done, Mail.take(two.url(), queue + ".out", done.size()));
            assertEquals(committed ? List.of() : List.of("m0#2!"), Mail.take(one.url(), queue, committed ? 0 : 1));
            try (XAConnection c = new ActiveMQXAConnectionFactory(one.url()).createXAConnection()) {
                XAResource r = c.createXASession().getXAResource();
                Xid[] left = r.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
                assertTrue(left.length == 1 && Foreign.is(left[0]), Arrays.toString(left));
                r.commit(left[0], false);
            }
            assertEquals(List.of("f0#1"), Mail.take(one.url(), queue + ".foreign", 1));
        }
    }

    /** Someone ends the branch of one broker by hand while the application is away: its transaction manager is told, and forgets it. */
    @ParameterizedTest
    @ValueSource(strings = {"commit", "rollback"})
    void ended_by_hand(String how) throws Exception {
        Path logs = Files.createTempDirectory("narayana");
        Path out = logs.resolve("out");
        String queue = Mail.unique("by-hand");
        try (BrokerProcess one = Broker.own("jta-one"); BrokerProcess two = Broker.own("jta-two")) {
            Mail.send(one.url(), queue, "m0");
            assertEquals(9, Application.run(out, "forward", logs.resolve("store").toString(), one.url(), two.url(), queue, "first commit"), Files.readString(out));
            List<String> ids = Pattern.compile("XID:[^\"]*").matcher(admin(two, "GET", "")).results().map(r -> r.group()).toList();
            assertEquals(1, ids.size(), "" + ids);
            admin(two, "POST", "/" + URLEncoder.encode(ids.get(0), StandardCharsets.UTF_8) + "/" + how);
            assertEquals(0, Application.run(out, "recover", logs.resolve("store").toString(), one.url(), two.url(), queue, ""), Files.readString(out));
            assertEquals(List.of("done: m0#1"), Mail.take(one.url(), queue + ".out", 1), Files.readString(out));
            List<String> done = how.equals("commit") ? List.of("done: m0#1") : List.of();
            assertEquals(done, Mail.take(two.url(), queue + ".out", done.size()));
            assertEquals(List.of(), Mail.take(one.url(), queue, 0));
            assertEquals(false, admin(one, "GET", "").contains("XID:"), Files.readString(out));
            // Of an outcome that is another than its own it keeps a record, for people to look at, and forgets nothing.
            assertEquals(how.equals("rollback"), admin(two, "GET", "").contains(ids.get(0)), Files.readString(out));
        }
    }

    private static String admin(BrokerProcess of, String method, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(of.admin() + "/api/v1/transactions" + path))
            .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.noBody()).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        return answer.body();
    }

    /** Spring's container with a JTA transaction manager and a pool that enlists: from one broker to the other, each message once. */
    @ParameterizedTest
    @ValueSource(strings = {"CACHE_NONE", "CACHE_CONNECTION"})
    void spring_container(String cache) throws Exception {
        String queue = Mail.unique("spring");
        Set<String> forwarded = new HashSet<>();
        try (BrokerProcess one = Broker.own("jta-one"); BrokerProcess two = Broker.own("jta-two")) {
            TransactionManager tm = com.arjuna.ats.jta.TransactionManager.transactionManager();
            JmsPoolXAConnectionFactory from = pool(one.url(), tm);
            JmsPoolXAConnectionFactory to = pool(two.url(), tm);
            JmsTemplate template = new JmsTemplate(to);
            template.setSessionTransacted(true);
            AtomicInteger failures = new AtomicInteger();
            DefaultMessageListenerContainer c = new DefaultMessageListenerContainer();
            c.setConnectionFactory(from);
            c.setDestinationName(queue);
            c.setSessionTransacted(true);
            c.setTransactionManager(new JtaTransactionManager(com.arjuna.ats.jta.UserTransaction.userTransaction(), tm));
            c.setReceiveTimeout(300);
            c.setCacheLevelName(cache);
            c.setConcurrency("1-4");
            c.setMessageListener((MessageListener) m -> {
                try {
                    String text = Mail.body(m);
                    template.send(queue + ".out", s -> s.createTextMessage(text));
                    if (text.equals("m1")) {
                        failures.incrementAndGet();
                        throw new IllegalStateException("not this one");
                    }
                } catch (JMSException e) {
                    throw new IllegalStateException(e);
                }
            });
            c.afterPropertiesSet();
            c.start();
            try {
                Mail.send(one.url(), queue, Mail.numbered(40));
                assertEquals("m1", Mail.body(Mail.deadLetters(one.url(), queue, 1).get(0)));
                Mail.awaitDepth(one.url(), queue, 0);
                for (String label : Mail.take(two.url(), queue + ".out", 39)) {
                    assertTrue(forwarded.add(label), label + " twice");
                }
            } finally {
                c.shutdown();
                from.stop();
                to.stop();
            }
            assertEquals(39, forwarded.size());
            assertEquals(3, failures.get());
            assertEquals(false, (admin(one, "GET", "") + admin(two, "GET", "")).contains("XID:"));
        }
    }

    private static JmsPoolXAConnectionFactory pool(String url, TransactionManager tm) {
        ActiveMQXAConnectionFactory f = new ActiveMQXAConnectionFactory(url);
        f.getRedeliveryPolicy().setMaximumRedeliveries(2);
        f.getRedeliveryPolicy().setInitialRedeliveryDelay(10);
        f.getRedeliveryPolicy().setRedeliveryDelay(10);
        JmsPoolXAConnectionFactory p = new JmsPoolXAConnectionFactory();
        p.setConnectionFactory(f);
        p.setTransactionManager(tm);
        p.setMaxConnections(4);
        return p;
    }
}

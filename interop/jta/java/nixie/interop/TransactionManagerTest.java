package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Narayana over two brokers. */
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
}

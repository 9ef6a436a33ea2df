package nixie.interop;

import com.arjuna.ats.arjuna.common.CoreEnvironmentBeanException;
import com.arjuna.ats.arjuna.common.ObjectStoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.arjPropertyManager;
import com.arjuna.ats.arjuna.common.recoveryPropertyManager;
import com.arjuna.ats.arjuna.recovery.RecoveryManager;
import com.arjuna.ats.internal.arjuna.recovery.AtomicActionRecoveryModule;
import com.arjuna.ats.internal.jta.recovery.arjunacore.JTANodeNameXAResourceOrphanFilter;
import com.arjuna.ats.internal.jta.recovery.arjunacore.JTATransactionLogXAResourceOrphanFilter;
import com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule;
import com.arjuna.ats.jta.common.jtaPropertyManager;
import com.arjuna.ats.jta.recovery.XAResourceRecoveryHelper;
import com.arjuna.common.internal.util.propertyservice.BeanPopulator;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import jakarta.transaction.TransactionManager;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/**
 * An application of its own process, with a transaction manager: it takes a message from a queue of one broker and
 * sends two on, one to each of two brokers, in one transaction; or it recovers what an earlier one left.
 */
public final class Application {
    private Application() { }

    /** Runs one in a process of its own; the exit code. */
    static int run(Path log, String... args) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java"), "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")), Application.class.getName()));
        command.addAll(List.of(args));
        Process p = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        if (!p.waitFor(90, TimeUnit.SECONDS)) {
            p.destroyForcibly();
            throw new IOException("still running");
        }
        return p.exitValue();
    }

    /** Arguments: forward or recover, the directory of logs, two URLs, the queue, and where to halt. */
    public static void main(String[] args) throws Exception {
        configure(args[1]);
        if (args[0].equals("recover")) {
            recover(args[2], args[3]);
        } else {
            forward(args[2], args[3], args[4], args[5]);
        }
        System.exit(0);
    }

    private static void configure(String dir) throws CoreEnvironmentBeanException {
        arjPropertyManager.getCoreEnvironmentBean().setNodeIdentifier("node1");
        for (String store : new String[] {null, "communicationStore", "stateStore"}) {
            BeanPopulator.getNamedInstance(ObjectStoreEnvironmentBean.class, store).setObjectStoreDir(dir);
        }
        jtaPropertyManager.getJTAEnvironmentBean().setXaRecoveryNodes(List.of("node1"));
        jtaPropertyManager.getJTAEnvironmentBean().setOrphanSafetyInterval(500);
        jtaPropertyManager.getJTAEnvironmentBean().setXaResourceOrphanFilters(
            List.of(new JTATransactionLogXAResourceOrphanFilter(), new JTANodeNameXAResourceOrphanFilter()));
        recoveryPropertyManager.getRecoveryEnvironmentBean().setRecoveryBackoffPeriod(1);
    }

    private static XAConnection connect(String url) throws JMSException {
        XAConnection c = new ActiveMQXAConnectionFactory(url).createXAConnection();
        c.start();
        return c;
    }

    private static void forward(String one, String two, String queue, String halt) throws Exception {
        XASession a = connect(one).createXASession();
        XASession b = connect(two).createXASession();
        TransactionManager tm = com.arjuna.ats.jta.TransactionManager.transactionManager();
        tm.begin();
        tm.getTransaction().enlistResource(new Halting(a.getXAResource(), halt.equals("first commit") ? "commit" : ""));
        tm.getTransaction().enlistResource(new Halting(b.getXAResource(),
            halt.equals("second commit") ? "commit" : halt.equals("second prepare") ? "prepare" : ""));
        MessageConsumer consumer = a.createConsumer(a.createQueue(queue));
        String text = Mail.body(Mail.must(consumer));
        Mail.send(a, queue + ".out", "done: " + text);
        Mail.send(b, queue + ".out", "done: " + text);
        tm.commit();
    }

    private static void recover(String one, String two) throws Exception {
        XARecoveryModule module = new XARecoveryModule();
        for (String url : new String[] {one, two}) {
            XAResource resource = connect(url).createXASession().getXAResource();
            module.addXAResourceRecoveryHelper(new XAResourceRecoveryHelper() {
                @Override
                public boolean initialise(String p) {
                    return true;
                }

                @Override
                public XAResource[] getXAResources() {
                    return new XAResource[] {resource};
                }
            });
        }
        recoveryPropertyManager.getRecoveryEnvironmentBean().setRecoveryModules(List.of(new AtomicActionRecoveryModule(), module));
        RecoveryManager manager = RecoveryManager.manager(RecoveryManager.DIRECT_MANAGEMENT);
        for (int i = 0; i < 3; i++) { // what is nobody's is given up only when it has been seen before
            manager.scan();
            Thread.sleep(600);
        }
    }

    /** A resource whose process is gone at a certain call. */
    private record Halting(XAResource of, String at) implements XAResource {
        private void here(String call) {
            if (at.equals(call)) {
                Runtime.getRuntime().halt(9);
            }
        }

        @Override
        public void commit(Xid x, boolean onePhase) throws XAException {
            here("commit");
            of.commit(x, onePhase);
        }

        @Override
        public int prepare(Xid x) throws XAException {
            here("prepare");
            return of.prepare(x);
        }

        @Override
        public void end(Xid x, int flags) throws XAException {
            of.end(x, flags);
        }

        @Override
        public void forget(Xid x) throws XAException {
            of.forget(x);
        }

        @Override
        public int getTransactionTimeout() throws XAException {
            return of.getTransactionTimeout();
        }

        @Override
        public boolean isSameRM(XAResource other) throws XAException {
            return of.isSameRM(other instanceof Halting h ? h.of : other);
        }

        @Override
        public Xid[] recover(int flag) throws XAException {
            return of.recover(flag);
        }

        @Override
        public void rollback(Xid x) throws XAException {
            of.rollback(x);
        }

        @Override
        public boolean setTransactionTimeout(int seconds) throws XAException {
            return of.setTransactionTimeout(seconds);
        }

        @Override
        public void start(Xid x, int flags) throws XAException {
            of.start(x, flags);
        }
    }
}

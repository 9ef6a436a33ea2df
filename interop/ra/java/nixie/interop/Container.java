package nixie.interop;

import java.lang.reflect.Method;
import java.util.Timer;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageListener;
import javax.resource.ResourceException;
import javax.resource.spi.BootstrapContext;
import javax.resource.spi.UnavailableException;
import javax.resource.spi.XATerminator;
import javax.resource.spi.endpoint.MessageEndpoint;
import javax.resource.spi.endpoint.MessageEndpointFactory;
import javax.resource.spi.work.ExecutionContext;
import javax.resource.spi.work.Work;
import javax.resource.spi.work.WorkListener;
import javax.resource.spi.work.WorkManager;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ra.ActiveMQActivationSpec;
import org.apache.activemq.ra.ActiveMQResourceAdapter;

/**
 * As much of an application server as a message-driven bean needs: threads for the resource adapter, and a
 * distributed transaction around each message, committed in two phases or rolled back if the bean throws.
 */
final class Container implements AutoCloseable, BootstrapContext {
    /** A message-driven bean. */
    interface Bean {
        void onMessage(Message m) throws JMSException;
    }

    private static final AtomicInteger BRANCHES = new AtomicInteger();

    private final ActiveMQResourceAdapter adapter = new ActiveMQResourceAdapter();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final ActiveMQActivationSpec spec = new ActiveMQActivationSpec();
    private final Endpoints endpoints;

    /** Deploys a bean for a queue; a limit for redeliveries, both delays 10 ms. */
    Container(String url, String queue, int sessions, int limit, boolean transacted, Bean bean) throws ResourceException {
        adapter.setServerUrl(url);
        adapter.setMaximumRedeliveries(limit);
        adapter.setInitialRedeliveryDelay(10L);
        adapter.start(this);
        spec.setResourceAdapter(adapter);
        spec.setDestinationType("javax.jms.Queue");
        spec.setDestination(queue);
        spec.setMaxSessions(Integer.toString(sessions));
        spec.setMaximumRedeliveries(limit);
        spec.setInitialRedeliveryDelay(10);
        endpoints = new Endpoints(transacted, bean);
        adapter.endpointActivation(endpoints, spec);
    }

    @Override
    public void close() {
        adapter.endpointDeactivation(endpoints, spec);
        adapter.stop();
        threads.shutdownNow();
    }

    private record Endpoints(boolean transacted, Bean bean) implements MessageEndpointFactory {
        @Override
        public MessageEndpoint createEndpoint(XAResource resource) throws UnavailableException {
            return new Endpoint(transacted ? resource : null, bean);
        }

        @Override
        public boolean isDeliveryTransacted(Method m) {
            return transacted;
        }
    }

    /** One instance of the bean. */
    private static final class Endpoint implements MessageEndpoint, MessageListener {
        private final XAResource resource;
        private final Bean bean;
        private Xid branch;
        private boolean failed;

        Endpoint(XAResource resource, Bean bean) {
            this.resource = resource;
            this.bean = bean;
        }

        @Override
        public void beforeDelivery(Method m) throws ResourceException {
            failed = false;
            if (resource == null) {
                return;
            }
            branch = new Branch("bean " + System.nanoTime() + " " + BRANCHES.incrementAndGet());
            try {
                resource.start(branch, XAResource.TMNOFLAGS);
            } catch (XAException e) {
                throw new ResourceException(e);
            }
        }

        @Override
        public void onMessage(Message m) {
            try {
                bean.onMessage(m);
            } catch (JMSException | RuntimeException e) {
                failed = true;
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void afterDelivery() throws ResourceException {
            if (resource == null) {
                return;
            }
            try {
                resource.end(branch, failed ? XAResource.TMFAIL : XAResource.TMSUCCESS);
                if (failed) {
                    resource.rollback(branch);
                } else if (resource.prepare(branch) == XAResource.XA_OK) {
                    resource.commit(branch, false);
                }
            } catch (XAException e) {
                throw new ResourceException(e);
            }
        }

        @Override
        public void release() {
        }
    }

    private record Branch(String id) implements Xid {
        @Override
        public int getFormatId() {
            return 7;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return id.getBytes();
        }

        @Override
        public byte[] getBranchQualifier() {
            return new byte[] {1};
        }
    }

    @Override
    public Timer createTimer() {
        return new Timer(true);
    }

    @Override
    public XATerminator getXATerminator() {
        return null;
    }

    @Override
    public WorkManager getWorkManager() {
        return new WorkManager() {
            @Override
            public void doWork(Work w) {
                w.run();
            }

            @Override
            public void doWork(Work w, long timeout, ExecutionContext c, WorkListener l) {
                w.run();
            }

            @Override
            public long startWork(Work w) {
                threads.execute(w);
                return 0;
            }

            @Override
            public long startWork(Work w, long timeout, ExecutionContext c, WorkListener l) {
                return startWork(w);
            }

            @Override
            public void scheduleWork(Work w) {
                threads.execute(w);
            }

            @Override
            public void scheduleWork(Work w, long timeout, ExecutionContext c, WorkListener l) {
                threads.execute(w);
            }
        };
    }
}

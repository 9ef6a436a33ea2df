package nixie.interop;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.jms.JMSException;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NameNotFoundException;
import javax.naming.NamingException;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.objectweb.jtests.jms.admin.Admin;

/**
 * What JORAM's suite asks of a provider. One broker process serves all tests of the run; a destination is
 * deleted at the broker when its test ends, so that a test which leaves something open is found out. The
 * process has to end with exit code 0.
 */
public final class JoramAdmin implements Admin {
    private static BrokerProcess process;

    private final Map<String, Object> bound = new ConcurrentHashMap<>();

    @Override
    public String getName() {
        return "NixieMQ";
    }

    @Override
    public Context createContext() throws NamingException {
        return new Names(bound);
    }

    /** The one thing that the suite does with a context is to look names up. */
    private static final class Names extends InitialContext {
        private final Map<String, Object> bound;

        Names(Map<String, Object> bound) throws NamingException {
            super(true); // lazy: there is no provider behind it
            this.bound = bound;
        }

        @Override
        public Object lookup(String name) throws NamingException {
            Object o = bound.get(name);
            if (o == null) {
                throw new NameNotFoundException(name);
            }
            return o;
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }

    /**
     * The suite sends a java.util.Vector as an object, which the client takes from trusted packages alone, and
     * wants properties of the types JMS names and no others, which is the client without its extension.
     */
    @Override
    public void createConnectionFactory(String name) {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(process.url());
        factory.setTrustedPackages(List.of("java.lang", "java.util"));
        factory.setNestedMapAndListEnabled(false);
        bound.put(name, factory);
    }

    @Override
    public void createQueueConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createTopicConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createQueue(String name) {
        bound.put(name, new ActiveMQQueue(name));
    }

    @Override
    public void createTopic(String name) {
        bound.put(name, new ActiveMQTopic(name));
    }

    @Override
    public void deleteQueue(String name) {
        bound.remove(name);
        delete(new ActiveMQQueue(name));
    }

    @Override
    public void deleteTopic(String name) {
        bound.remove(name);
        delete(new ActiveMQTopic(name));
    }

    @Override
    public void deleteConnectionFactory(String name) {
        bound.remove(name);
    }

    @Override
    public void deleteQueueConnectionFactory(String name) {
        bound.remove(name);
    }

    @Override
    public void deleteTopicConnectionFactory(String name) {
        bound.remove(name);
    }

    /** Starts the process, unless it runs; it is ended when the virtual machine ends. */
    @Override
    public void startServer() throws IOException {
        synchronized (JoramAdmin.class) {
            if (process != null) {
                return;
            }
            process = new BrokerProcess("joram", null).start();
            Runtime.getRuntime().addShutdownHook(new Thread(JoramAdmin::end));
        }
    }

    private static void end() {
        try {
            int code = process.terminate();
            if (code != 0 && !Boolean.getBoolean("broker.reference")) {
                System.err.println("the broker ended with exit code " + code + "\n" + process.tail(60));
                Runtime.getRuntime().halt(1);
            }
        } catch (IOException | InterruptedException e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    @Override
    public void stopServer() {
        // It serves the next test too.
    }

    @Override
    public void start() {
        // Nothing of the adapter's needs starting.
    }

    @Override
    public void stop() {
        // Nor stopping.
    }

    private void delete(ActiveMQDestination d) {
        try {
            ActiveMQConnection c = (ActiveMQConnection) new ActiveMQConnectionFactory(process.url()).createConnection();
            try {
                c.destroyDestination(d);
            } finally {
                c.close();
            }
        } catch (JMSException e) {
            throw new IllegalStateException("cannot delete " + d, e);
        }
    }
}

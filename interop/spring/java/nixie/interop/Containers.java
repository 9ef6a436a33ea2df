package nixie.interop;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/** Listener containers as applications set them up, and listeners that note what they got. */
final class Containers {
    private Containers() { }

    /** A client whose own limit is {@code max}, with {@code delay} ms before each local redelivery. */
    static ActiveMQConnectionFactory factory(String url, int max, long delay) {
        return set(new ActiveMQConnectionFactory(url), max, delay);
    }

    /** Such a factory, which counts how often it was asked for a connection. */
    static final class Counting extends ActiveMQConnectionFactory {
        final AtomicInteger attempts = new AtomicInteger();

        Counting(String url, int max, long delay) {
            super(url);
            set(this, max, delay);
        }

        @Override
        protected ActiveMQConnection createActiveMQConnection(String user, String password) throws JMSException {
            attempts.incrementAndGet();
            return super.createActiveMQConnection(user, password);
        }
    }

    private static ActiveMQConnectionFactory set(ActiveMQConnectionFactory f, int max, long delay) {
        f.getRedeliveryPolicy().setMaximumRedeliveries(max);
        f.getRedeliveryPolicy().setInitialRedeliveryDelay(delay);
        f.getRedeliveryPolicy().setRedeliveryDelay(delay);
        f.setTrustAllPackages(false);
        return f;
    }

    /** C26's container: transacted, receive time-out and recovery interval 500 ms. */
    static DefaultMessageListenerContainer transacted(ConnectionFactory f, String queue, String cache, int consumers,
            MessageListener listener) {
        DefaultMessageListenerContainer c = new DefaultMessageListenerContainer();
        c.setConnectionFactory(f);
        c.setDestinationName(queue);
        c.setSessionTransacted(true);
        c.setReceiveTimeout(500);
        c.setRecoveryInterval(500);
        c.setCacheLevelName(cache);
        c.setConcurrentConsumers(consumers);
        c.setMessageListener(listener);
        c.afterPropertiesSet();
        c.start();
        return c;
    }

    /** Notes each delivery with its time, and fails those whose text is in {@code poison}. */
    static final class Listener implements MessageListener {
        /** One delivery: text#count with ! where redelivered, and when, ms. */
        record Delivery(String label, long at) { }

        private final List<String> poison;
        private final long work;
        private final List<Delivery> deliveries = new ArrayList<>();

        Listener(long work, String... poison) {
            this.work = work;
            this.poison = List.of(poison);
        }

        @Override
        public void onMessage(Message m) {
            try {
                String text = ((TextMessage) m).getText();
                synchronized (this) {
                    deliveries.add(new Delivery(Mail.label(m), TimeUnit.NANOSECONDS.toMillis(System.nanoTime())));
                }
                if (work > 0) {
                    Thread.sleep(work);
                }
                if (poison.contains(text)) {
                    throw new IllegalStateException("cannot process " + text);
                }
            } catch (JMSException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        synchronized List<Delivery> of(String text) {
            return deliveries.stream().filter(d -> d.label().startsWith(text + "#")).toList();
        }

        synchronized List<Delivery> all() {
            return List.copyOf(deliveries);
        }
    }
}

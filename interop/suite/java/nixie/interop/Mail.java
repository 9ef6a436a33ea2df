package nixie.interop;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.command.ActiveMQQueue;

/**
 * Short words for what every test does: send, receive, look. Each message carries the property
 * {@code origin} (the queue it was sent to), by which a test finds its own dead letters in a shared queue.
 */
final class Mail {
    static final String DLQ = "ActiveMQ.DLQ";
    static final String CAUSE = "dlqDeliveryFailureCause";
    /** How long a receive waits for a message that must come, milliseconds. */
    static final long SOON = 20_000;
    /** How long a receive waits to see that none comes, milliseconds. */
    static final long QUIET = 400;

    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final String RUN = Long.toString(System.currentTimeMillis(), 36);

    private Mail() { }

    /** A destination name that no other test and no earlier run uses. */
    static String unique(String stem) {
        return stem + "." + RUN + "." + COUNT.incrementAndGet();
    }

    /** Sends persistent text messages, in order, in a connection of their own. */
    static void send(String url, String name, String... texts) throws JMSException {
        try (Client c = Client.open(url)) {
            send(c.auto(), name, texts);
        }
    }

    static void send(Session s, String name, String... texts) throws JMSException {
        MessageProducer p = Client.producer(s, name);
        for (String text : texts) {
            p.send(text(s, name, text));
        }
        p.close();
    }

    static TextMessage text(Session s, String name, String text) throws JMSException {
        TextMessage m = s.createTextMessage(text);
        m.setStringProperty("origin", name);
        return m;
    }

    /** m0, m1, ... */
    static String[] numbered(int n) {
        String[] out = new String[n];
        for (int i = 0; i < n; i++) {
            out[i] = "m" + i;
        }
        return out;
    }

    /** The text of a message that must come. */
    static String next(MessageConsumer c) throws JMSException {
        return body(must(c));
    }

    static Message must(MessageConsumer c) throws JMSException {
        Message m = c.receive(SOON);
        if (m == null) {
            throw new AssertionError("no message within " + SOON + " ms");
        }
        return m;
    }

    static String body(Message m) throws JMSException {
        return m == null ? null : ((TextMessage) m).getText();
    }

    static int count(Message m) throws JMSException {
        return m.getIntProperty("JMSXDeliveryCount");
    }

    /** text#count, with a ! where the message is flagged redelivered: "m2#2!". */
    static String label(Message m) throws JMSException {
        return m == null ? "none" : body(m) + "#" + count(m) + (m.getJMSRedelivered() ? "!" : "");
    }

    /** Receives the n messages that must come, and any that come on top; the labels. */
    static List<String> drain(MessageConsumer c, int n) throws JMSException {
        List<String> out = new ArrayList<>();
        for (Message m = patient(c, n > 0); m != null; m = patient(c, out.size() < n)) {
            out.add(label(m));
        }
        return out;
    }

    private static Message patient(MessageConsumer c, boolean expected) throws JMSException {
        return c.receive(expected ? SOON : QUIET);
    }

    /** Takes and acknowledges all that a queue holds, which should be n; the labels. */
    static List<String> take(String url, String name, int n) throws JMSException {
        try (Client c = Client.open(url)) {
            return drain(Client.consumer(c.auto(), name), n);
        }
    }

    /** Sees that nothing comes. */
    static void none(MessageConsumer c) throws JMSException {
        Message m = c.receive(QUIET);
        if (m != null) {
            throw new AssertionError("unexpected message " + label(m));
        }
    }

    /** Takes n dead letters that were sent to the named destination, and sees that no more come. */
    static List<Message> deadLetters(String url, String origin, int n) throws JMSException {
        try (Client c = Client.open(url)) {
            Session s = c.auto();
            MessageConsumer consumer = s.createConsumer(Client.destination(DLQ), "origin = '" + origin + "'");
            List<Message> out = new ArrayList<>();
            for (Message m = patient(consumer, n > 0); m != null; m = patient(consumer, out.size() < n)) {
                out.add(m);
            }
            if (out.size() != n) {
                throw new AssertionError(out.size() + " dead letters from " + origin + ", want " + n + ": " + out);
            }
            return out;
        }
    }

    static List<String> bodies(List<Message> messages) throws JMSException {
        List<String> out = new ArrayList<>();
        for (Message m : messages) {
            out.add(body(m));
        }
        return out;
    }

    /** What a browser sees; the queue is left as it is. */
    static List<Message> browse(String url, String name) throws JMSException {
        try (Client c = Client.open(url)) {
            return browse(c.auto(), name, null);
        }
    }

    static List<Message> browse(Session s, String name, String selector) throws JMSException {
        QueueBrowser b = s.createBrowser(new ActiveMQQueue(name), selector);
        List<Message> out = new ArrayList<>();
        for (Enumeration<?> e = b.getEnumeration(); e.hasMoreElements(); ) {
            out.add((Message) e.nextElement());
        }
        b.close();
        return out;
    }

    /** Waits until a client has given up what a queue holds, which it does unread as it looks for something to receive. */
    static void givenUp(String url, String name, MessageConsumer c) throws Exception {
        await("nothing left in " + name, () -> {
            none(c);
            return browse(url, name).isEmpty();
        });
    }

    /** What is waited for. */
    interface Condition {
        boolean holds() throws Exception;
    }

    /** Waits until something is so, as it must be. */
    static void await(String what, Condition so) throws Exception {
        for (long end = System.nanoTime() + SOON * 1_000_000; !so.holds(); Thread.sleep(20)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within " + SOON + " ms: " + what);
            }
        }
    }

    /** Waits until a browser sees exactly n messages in a queue. */
    static void awaitDepth(String url, String name, int n) throws JMSException, InterruptedException {
        int seen = -1;
        for (long end = System.nanoTime() + SOON * 1_000_000; System.nanoTime() < end; Thread.sleep(50)) {
            seen = browse(url, name).size();
            if (seen == n) {
                return;
            }
        }
        throw new AssertionError("depth of " + name + " is " + seen + ", want " + n);
    }
}

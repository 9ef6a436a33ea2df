package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ScheduledMessage;
import org.apache.activemq.command.ActiveMQMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Scheduled messages (R-SCH-01 to 20, C06, C08). */
@Reference.Beyond("R-EDGE-44, C08")
class SchedulerTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    private static Message text(Session s, String queue, String body, long delay) throws JMSException {
        Message m = Mail.text(s, queue, body);
        m.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, delay);
        return m;
    }

    /** C06 part 1. */
    @Test
    void short_delay_is_not_behind_a_long_one() throws Exception {
        Pace.keeps(SchedulerTest::shortAndLong);
    }

    private static void shortAndLong() throws Exception {
        String queue = Mail.unique("mix");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            MessageProducer p = Client.producer(s, queue);
            long begin = now();
            for (long delay : new long[] {4000, 1000, 2500}) {
                p.send(text(s, queue, "m" + delay, delay));
            }
            for (long delay : new long[] {1000, 2500, 4000}) {
                Message m = Mail.must(consumer);
                assertEquals("m" + delay + "#1", Mail.label(m));
                Pace.within(delay, now() - begin, Mail.body(m));
                assertFalse(m.propertyExists(ScheduledMessage.AMQ_SCHEDULED_DELAY));
                assertEquals(m.getJMSMessageID(), m.getStringProperty(ScheduledMessage.AMQ_SCHEDULED_ID));
            }
            Mail.none(consumer);
        }
    }

    /** C08 part 1: all properties copied, and another delay. */
    @Test
    void stale_properties_do_not_disturb_the_next_delay() throws Exception {
        Pace.keeps(SchedulerTest::staleProperties);
    }

    private static void staleProperties() throws Exception {
        String queue = Mail.unique("again");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            MessageProducer p = Client.producer(s, queue);
            long begin = now();
            p.send(text(s, queue, "m", 500));
            for (long[] step : new long[][] {{500, 2000}, {2000, 1000}, {1000, 0}}) {
                Message m = Mail.must(consumer);
                Pace.within(step[0], now() - begin, "delay " + step[0]);
                if (step[1] == 0) {
                    break;
                }
                Message next = s.createTextMessage("m");
                for (Object name : Collections.list(m.getPropertyNames())) {
                    if (!name.toString().startsWith("JMSX")) {
                        next.setObjectProperty(name.toString(), m.getObjectProperty(name.toString()));
                    }
                }
                next.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, step[1]);
                begin = now();
                p.send(next);
            }
        }
    }

    @Test
    void repeats() throws Exception {
        Pace.keeps(SchedulerTest::repeated);
    }

    private static void repeated() throws Exception {
        String queue = Mail.unique("repeat");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageConsumer consumer = Client.consumer(s, queue);
            Message m = text(s, queue, "m", 1000);
            m.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 500);
            m.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 3);
            long begin = now();
            Client.producer(s, queue).send(m);
            Set<String> ids = new HashSet<>();
            for (int i = 0; i < 4; i++) {
                Message got = Mail.must(consumer);
                Pace.within(1000 + 500L * i, now() - begin, "delivery " + (i + 1));
                ids.add(got.getJMSMessageID());
            }
            Mail.none(consumer);
            assertEquals(4, ids.size());
        }
    }

    @Test
    void cron_line_is_kept_and_removed() throws Exception {
        String queue = Mail.unique("cron");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = Mail.text(s, queue, "m");
            m.setStringProperty(ScheduledMessage.AMQ_SCHEDULED_CRON, "0 0 1 1 *");
            Client.producer(s, queue).send(m);
            List<Message> jobs = browse(s, queue, 1);
            assertEquals(1, jobs.size());
            assertEquals("0 0 1 1 *", jobs.get(0).getStringProperty(ScheduledMessage.AMQ_SCHEDULED_CRON));
            manage(s, ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVE, null, jobs.get(0).getStringProperty(ScheduledMessage.AMQ_SCHEDULED_ID), 0, 0);
            assertEquals(0, browse(s, queue, 0).size());
        }
    }

    /** R-SCH-20. */
    @Test
    void management() throws Exception {
        String queue = Mail.unique("managed");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            MessageProducer p = Client.producer(s, queue);
            for (int hour = 1; hour <= 4; hour++) {
                Message m = text(s, queue, "m" + hour, hour * 3_600_000L);
                m.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 60_000);
                m.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 5);
                p.send(m);
            }
            List<Message> jobs = browse(s, queue, 4);
            assertEquals(List.of("m1", "m2", "m3", "m4"), Mail.bodies(jobs));
            ActiveMQMessage first = (ActiveMQMessage) jobs.get(0);
            assertEquals(3_600_000L, first.getLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY));
            assertEquals(60_000L, first.getLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD));
            assertEquals(5, first.getIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT));
            assertEquals(Client.destination(queue), first.getOriginalDestination());
            manage(s, ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVE, null, first.getStringProperty(ScheduledMessage.AMQ_SCHEDULED_ID), 0, 0);
            long clock = System.currentTimeMillis();
            manage(s, ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVEALL, null, null, clock + 5_400_000, clock + 9_000_000);
            assertEquals(List.of("m3", "m4"), Mail.bodies(browse(s, queue, 2)));
            manage(s, ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVEALL, null, null, clock + 9_000_000, clock + 20_000_000);
            assertEquals(0, browse(s, queue, 0).size());
        }
    }

    private static void manage(Session s, String action, Destination replyTo, String id, long from, long until) throws JMSException {
        Message m = s.createMessage();
        m.setStringProperty(ScheduledMessage.AMQ_SCHEDULER_ACTION, action);
        if (id != null) {
            m.setStringProperty(ScheduledMessage.AMQ_SCHEDULED_ID, id);
        }
        if (from > 0) {
            m.setStringProperty(ScheduledMessage.AMQ_SCHEDULER_ACTION_START_TIME, Long.toString(from));
            m.setStringProperty(ScheduledMessage.AMQ_SCHEDULER_ACTION_END_TIME, Long.toString(until));
        }
        m.setJMSReplyTo(replyTo);
        MessageProducer p = s.createProducer(s.createTopic(ScheduledMessage.AMQ_SCHEDULER_MANAGEMENT_DESTINATION));
        p.send(m);
        p.close();
    }

    /** The scheduled messages that were sent to a queue, which should be n, those due next first. */
    private static List<Message> browse(Session s, String queue, int n) throws JMSException {
        Destination reply = s.createTemporaryQueue();
        MessageConsumer consumer = s.createConsumer(reply);
        manage(s, ScheduledMessage.AMQ_SCHEDULER_ACTION_BROWSE, reply, null, 0, 0);
        List<Message> out = new ArrayList<>();
        for (Message m = consumer.receive(n > 0 ? Mail.SOON : 2000); m != null; m = consumer.receive(out.size() < n ? Mail.SOON : Mail.QUIET)) {
            if (queue.equals(m.getStringProperty("origin"))) {
                out.add(m);
            }
        }
        consumer.close();
        return out;
    }

    /** R-SCH-03: from the commit on, and not at all after a rollback. */
    @Test
    void transactions() throws Exception {
        Pace.keeps(SchedulerTest::inTransactions);
    }

    private static void inTransactions() throws Exception {
        String queue = Mail.unique("tx");
        try (Client c = Client.open(broker.url())) {
            MessageConsumer consumer = Client.consumer(c.auto(), queue);
            Session s = c.transacted();
            MessageProducer p = Client.producer(s, queue);
            p.send(text(s, queue, "never", 500));
            s.rollback();
            p.send(text(s, queue, "m", 1000));
            assertNull(consumer.receive(1500));
            s.commit();
            long committed = now();
            assertEquals("m#1", Mail.label(Mail.must(consumer)));
            Pace.within(1000, now() - committed, "m");
            Mail.none(consumer);
        }
    }

    @Test
    void schedule_survives_a_kill_and_fires_when_overdue() throws Exception {
        Pace.keeps(SchedulerTest::killed);
    }

    private static void killed() throws Exception {
        try (BrokerProcess own = Broker.own("SchedulerTest-kill")) {
            String queue = Mail.unique("kill");
            long begin;
            try (Client c = Client.open(own.url())) {
                Session s = c.auto();
                MessageProducer p = Client.producer(s, queue);
                p.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                begin = now();
                p.send(text(s, queue, "overdue", 2000));
                p.setDeliveryMode(DeliveryMode.PERSISTENT);
                p.send(text(s, queue, "later", 5000));
                own.kill();
                Pace.inTime(now() - begin < 2000, "killed when it was due");
                Client.abandon(c.connection);
            }
            Thread.sleep(Math.max(0, begin + 2500 - now()));
            own.start();
            try (Client c = Client.open(own.url())) {
                MessageConsumer consumer = Client.consumer(c.auto(), queue);
                assertEquals("overdue#1", Mail.label(Mail.must(consumer)));
                assertEquals("later#1", Mail.label(Mail.must(consumer)));
                Pace.within(5000, now() - begin, "later");
                Mail.none(consumer);
            }
        }
    }

    /** The broker's own checks; those of the client come before, but not for all types. */
    @Test
    void what_cannot_be_kept_is_refused() throws Exception {
        String queue = Mail.unique("refused");
        try (Client c = Client.open(broker.url())) {
            Session s = c.auto();
            Message m = text(s, queue, "m", 1000);
            m.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 10);
            m.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 1001);
            JMSException refused = assertThrows(JMSException.class, () -> Client.producer(s, queue).send(m));
            assertTrue(refused.getMessage().contains("maxSchedulerRepeatAllowed"), refused.getMessage());
            assertNotEquals(0, refused.getMessage().length());
            Message none = s.createMessage();
            JMSException unknown = assertThrows(JMSException.class,
                () -> s.createProducer(s.createTopic(ScheduledMessage.AMQ_SCHEDULER_MANAGEMENT_DESTINATION)).send(none, DeliveryMode.PERSISTENT, 4, 0));
            assertTrue(unknown.getMessage().contains(ScheduledMessage.AMQ_SCHEDULER_ACTION), unknown.getMessage());
        }
    }
}

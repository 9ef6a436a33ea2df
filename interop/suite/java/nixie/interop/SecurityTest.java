package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.function.Executable;

/** simpleAuthenticationPlugin and authorizationPlugin (spec section 7.8). */
class SecurityTest {
    @RegisterExtension
    static Broker broker = Broker.with("security.xml");

    private static Client as(String user, String password) throws JMSException {
        return Client.to(broker.url()).limit(0).factory(f -> {
            f.setUserName(user);
            f.setPassword(password);
        }).open();
    }

    private static void refused(String text, Executable what) {
        JMSException e = assertThrows(JMSException.class, what);
        assertTrue(e.getMessage().contains(text), e.getMessage());
    }

    @Test
    void who_comes_in() throws Exception {
        refused("User name [sam] or password is invalid.", () -> as("sam", "wrong").close());
        refused("User name [tom] or password is invalid.", () -> as("tom", "secret").close());
        refused("User name [null] or password is invalid.", () -> as(null, null).close());
        as("sam", "secret").close();
    }

    @Test
    void what_sam_may() throws Exception {
        String queue = Mail.unique("USERS.a");
        try (Client c = as("sam", "secret")) {
            Session s = c.auto();
            Client.producer(s, queue).send(Mail.text(s, queue, "m0"));
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(s, queue))));
            refused("User sam is not authorized to write to: queue://ORDERS", () -> Client.producer(s, "ORDERS"));
            refused("User sam is not authorized to read from: queue://ORDERS", () -> Client.consumer(s, "ORDERS"));
            MessageProducer anonymous = s.createProducer(null);
            Queue orders = s.createQueue("ORDERS");
            refused("User sam is not authorized to write to: queue://ORDERS", () -> anonymous.send(orders, s.createTextMessage("x")));

            // Requests and answers need temporary queues, and their advisories.
            Queue mine = s.createTemporaryQueue();
            MessageConsumer answers = s.createConsumer(mine);
            anonymous.send(mine, Mail.text(s, queue, "answer"));
            assertEquals("answer", Mail.body(Mail.must(answers)));
        }
    }

    /** R-XML-31: admin is needed to create, and not to use what is there. */
    @Test
    void who_creates() throws Exception {
        String queue = Mail.unique("DROP.a");
        try (Client sam = as("sam", "secret"); Client system = as("system", "manager")) {
            Session s = sam.auto();
            refused("User sam is not authorized to create: queue://" + queue, () -> Client.producer(s, queue));
            Client.consumer(system.auto(), queue).close();
            Client.producer(s, queue).send(Mail.text(s, queue, "m0"));
            assertEquals("m0#1", Mail.label(Mail.must(Client.consumer(system.auto(), queue))));
        }
    }

    /** R-DLQ-06: what sam gives up gets to a queue that sam may not write to. */
    @Test
    void dead_letters_need_no_rights() throws Exception {
        String queue = Mail.unique("USERS.dead");
        try (Client sam = as("sam", "secret"); Client system = as("system", "manager")) {
            Session s = sam.transacted();
            Client.producer(s, queue).send(Mail.text(s, queue, "m0"));
            s.commit();
            Mail.must(Client.consumer(s, queue));
            s.rollback();
            assertEquals(List.of("m0#1"), Mail.drain(Client.consumer(system.auto(), Mail.DLQ), 1));
        }
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jms.annotation.EnableJms;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.core.JmsTemplate;

/** Spring Boot's starter with nothing but the broker's URL. */
class SpringBootTest {
    @RegisterExtension
    static final Broker broker = Broker.plain();

    /** An application with one listener, which fails what begins with "bad". */
    @EnableAutoConfiguration
    @EnableJms
    static class Application {
        static final BlockingQueue<String> GOT = new LinkedBlockingQueue<>();

        @JmsListener(destination = "boot.orders")
        void order(String text) {
            GOT.add(text);
            if (text.startsWith("bad")) {
                throw new IllegalArgumentException("cannot process " + text);
            }
        }
    }

    @Test
    void starter_sends_receives_and_fails() throws Exception {
        SpringApplication app = new SpringApplication(Application.class);
        app.setWebApplicationType(org.springframework.boot.WebApplicationType.NONE);
        try (ConfigurableApplicationContext context = app.run("--spring.activemq.broker-url=" + broker.url() + "?jms.redeliveryPolicy.maximumRedeliveries=1&jms.redeliveryPolicy.initialRedeliveryDelay=10",
                "--spring.main.banner-mode=off")) {
            JmsTemplate jms = context.getBean(JmsTemplate.class);
            jms.convertAndSend("boot.orders", "good", m -> {
                m.setStringProperty("origin", "boot.orders");
                return m;
            });
            assertEquals("good", Application.GOT.poll(20, TimeUnit.SECONDS));
            jms.convertAndSend("boot.orders", "bad", m -> {
                m.setStringProperty("origin", "boot.orders");
                return m;
            });
            assertEquals("bad", Application.GOT.poll(20, TimeUnit.SECONDS));
            assertEquals("bad", Application.GOT.poll(20, TimeUnit.SECONDS));
            assertEquals("bad", Mail.body(Mail.deadLetters(broker.url(), "boot.orders", 1).get(0)));
        }
    }
}

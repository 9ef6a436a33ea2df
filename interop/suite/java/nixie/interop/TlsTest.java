package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Arrays;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Session;
import org.apache.activemq.ActiveMQSslConnectionFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Clients that come with TLS, to the connectors and the sslContext of an activemq.xml. Its stores are made by
 * keytool, and by Java's KeyStore, of which keytool is the command.
 */
class TlsTest {
    private static final String SECRET = "password";

    @TempDir static Path dir;
    private static BrokerProcess broker;
    private static BrokerProcess pkcs12;

    @BeforeAll
    static void start() throws Exception {
        keytool("broker", "JKS", "-keyalg", "RSA", "-keysize", "2048", "-ext", "san=dns:localhost,ip:127.0.0.1");
        keytool("client", "PKCS12", "-keyalg", "EC");
        keytool("stranger", "PKCS12", "-keyalg", "EC");
        copy("broker.jks", "JKS", "broker.p12", "PKCS12");
        trust("broker.jks", "JKS", "trusts-broker.jks", "JKS");
        for (String type : new String[] {"JKS", "PKCS12"}) {
            trust("client.p12", "PKCS12", "trusts-client" + suffix(type), type);
        }
        broker = started("JKS");
        pkcs12 = started("PKCS12");
    }

    @AfterAll
    static void stop() throws Exception {
        broker.close();
        pkcs12.close();
    }

    private static String suffix(String type) {
        return type.equals("JKS") ? ".jks" : ".p12";
    }

    /** Makes a store with a key and its certificate, which it signs itself. */
    private static void keytool(String name, String type, String... more) throws Exception {
        List<String> command = new java.util.ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
            "-genkeypair", "-alias", name, "-dname", "CN=" + name, "-validity", "365", "-storetype", type, "-keystore", file(name + suffix(type)),
            "-storepass", SECRET, "-keypass", SECRET));
        command.addAll(Arrays.asList(more));
        Process p = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(dir.resolve("keytool.log").toFile()).start();
        assertEquals(0, p.waitFor(), () -> {
            try {
                return Files.readString(dir.resolve("keytool.log"));
            } catch (java.io.IOException e) {
                return e.toString();
            }
        });
    }

    private static String file(String name) {
        return dir.resolve(name).toString();
    }

    private static KeyStore load(String name, String type) throws Exception {
        KeyStore store = KeyStore.getInstance(type);
        try (var in = Files.newInputStream(dir.resolve(name))) {
            store.load(in, SECRET.toCharArray());
        }
        return store;
    }

    private static void store(KeyStore s, String name) throws Exception {
        try (OutputStream out = Files.newOutputStream(dir.resolve(name))) {
            s.store(out, SECRET.toCharArray());
        }
    }

    /** Copies the key of a store into one of another type. */
    private static void copy(String from, String type, String to, String toType) throws Exception {
        KeyStore source = load(from, type);
        KeyStore copy = KeyStore.getInstance(toType);
        copy.load(null, null);
        String alias = source.aliases().nextElement();
        copy.setKeyEntry(alias, source.getKey(alias, SECRET.toCharArray()), SECRET.toCharArray(), source.getCertificateChain(alias));
        store(copy, to);
    }

    /** Makes a store that trusts the certificate of another one. */
    private static void trust(String from, String type, String to, String toType) throws Exception {
        KeyStore source = load(from, type);
        Certificate c = source.getCertificate(source.aliases().nextElement());
        KeyStore trust = KeyStore.getInstance(toType);
        trust.load(null, null);
        trust.setCertificateEntry("trusted", c);
        store(trust, to);
    }

    /** A broker by an activemq.xml with stores of that type: with TLS, with TLS for known clients, and without. */
    private static BrokerProcess started(String type) throws Exception {
        Path conf = Files.createDirectories(dir.resolve("conf-" + type));
        Files.writeString(conf.resolve("activemq.xml"), """
            <beans xmlns="http://www.springframework.org/schema/beans">
              <broker xmlns="http://activemq.apache.org/schema/core" brokerName="localhost">
                <sslContext>
                  <sslContext keyStore="file:${activemq.base}/broker%1$s" keyStorePassword="password" keyStoreType="%2$s"
                              trustStore="file:${activemq.base}/trusts-client%1$s" trustStorePassword="password" trustStoreType="%2$s"/>
                </sslContext>
                <transportConnectors>
                  <transportConnector name="ssl" uri="ssl://127.0.0.1:0"/>
                  <transportConnector name="known" uri="nio+ssl://127.0.0.1:0?needClientAuth=true&amp;transport.enabledProtocols=TLSv1.2"/>
                  <transportConnector name="openwire" uri="tcp://127.0.0.1:0"/>
                </transportConnectors>
              </broker>
            </beans>
            """.formatted(suffix(type), type.toLowerCase(java.util.Locale.ROOT)));
        return new BrokerProcess("tls-" + type, conf.resolve("activemq.xml")).fileListens().start();
    }

    private static String ssl() {
        return broker.urls().get(0);
    }

    private static ActiveMQSslConnectionFactory factory(String url, String key) throws Exception {
        ActiveMQSslConnectionFactory f = new ActiveMQSslConnectionFactory(url);
        f.setTrustStore(file("trusts-broker.jks"));
        f.setTrustStorePassword(SECRET);
        if (key != null) {
            f.setKeyStore(file(key));
            f.setKeyStorePassword(SECRET);
        }
        return f;
    }

    private static void roundTrip(ActiveMQSslConnectionFactory f) throws Exception {
        Connection c = f.createConnection();
        try {
            c.start();
            String queue = Mail.unique("tls");
            Session s = c.createSession(true, Session.SESSION_TRANSACTED);
            Mail.send(s, queue, "m0");
            BytesMessage large = s.createBytesMessage();
            large.writeBytes(new byte[1 << 20]);
            Client.producer(s, queue).send(large);
            s.commit();
            var consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            assertEquals(1 << 20, ((BytesMessage) Mail.must(consumer)).getBodyLength());
            s.commit();
        } finally {
            c.close();
        }
    }

    /** An attempt that must fail soon, with a line in the log that says why, or soon has it. */
    private static void refused(ActiveMQSslConnectionFactory f, String remedy) throws Exception {
        assertThrows(JMSException.class, () -> {
            Connection c = f.createConnection(); // which does not ask the broker anything yet
            try {
                c.start();
            } finally {
                Client.abandon(c);
            }
        });
        Mail.await(remedy + " in the log", () -> broker.tail(1000).contains(remedy));
    }

    /** Both kinds of store, on both kinds of connector. */
    @ParameterizedTest
    @ValueSource(strings = {"JKS", "PKCS12"})
    void connects_with_stores_of(String type) throws Exception {
        BrokerProcess b = type.equals("JKS") ? broker : pkcs12;
        assertEquals(List.of("ssl", "ssl", "tcp"), b.urls().stream().map(u -> URI.create(u).getScheme()).toList());
        roundTrip(factory(b.urls().get(0), null));
        roundTrip(factory(b.urls().get(1), "client.p12"));
        roundTrip(factory("failover:(nio+ssl" + b.urls().get(1).substring(3) + ")", "client.p12"));
    }

    /** needClientAuth: whoever shows no certificate, or one that nobody trusts, is not let in. */
    @Test
    void refuses_unknown_clients() throws Exception {
        refused(factory(broker.urls().get(1), null), "the listener has needClientAuth: give the client a certificate");
        refused(factory(broker.urls().get(1), "stranger.p12"), "the listener has needClientAuth: give the client a certificate");
    }

    /** A client that does not trust the broker goes, and the broker's log says so. */
    @Test
    void names_clients_without_trust() throws Exception {
        ActiveMQSslConnectionFactory f = factory(ssl(), null);
        f.setTrustStore(file("trusts-client.jks"));
        refused(f, "the client does not trust the broker's certificate");
    }

    /** tcp where ssl is served, and the other way round. */
    @Test
    void names_clients_of_the_other_kind() throws Exception {
        refused(factory(ssl().replace("ssl:", "tcp:"), null), "the client speaks OpenWire without TLS: write ssl://");
        refused(factory(broker.urls().get(2).replace("tcp:", "ssl:"), null), "begins like TLS (an ssl:// URL, where tcp:// is served)");
    }

    /** Cuts are healed by failover, with TLS as without. */
    @Test
    void fails_over() throws Exception {
        try (CuttingProxy proxy = new CuttingProxy(URI.create(ssl()).getPort())) {
            Connection c = factory("failover:(" + proxy.url().replace("tcp:", "ssl:") + ")?initialReconnectDelay=10&useExponentialBackOff=false", null).createConnection();
            try {
                c.start();
                String queue = Mail.unique("tls-cut");
                Session s = c.createSession(true, Session.SESSION_TRANSACTED);
                var consumer = Client.consumer(s, queue);
                for (int round = 0; round < 3; round++) {
                    Mail.send(s, queue, "before" + round);
                    s.commit();
                    assertEquals("before" + round + "#1", Mail.label(Mail.must(consumer)));
                    s.commit();
                    proxy.cut();
                    Mail.send(s, queue, "after" + round);
                    s.commit();
                    assertEquals("after" + round + "#1", Mail.label(Mail.must(consumer)));
                    s.commit();
                }
                assertTrue(proxy.accepted() >= 4, proxy.accepted() + " connections");
            } finally {
                c.close();
            }
        }
    }
}

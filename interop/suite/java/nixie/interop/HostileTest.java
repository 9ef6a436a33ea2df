package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.command.WireFormatInfo;
import org.apache.activemq.openwire.OpenWireFormat;
import org.apache.activemq.openwire.OpenWireFormatFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What no client sends: the broker ends that connection and goes on serving the others. */
class HostileTest {
    @RegisterExtension static final Broker broker = Broker.plain();

    @AfterEach
    void others_are_served() throws Exception {
        String queue = Mail.unique("after");
        try (Client c = Client.to(broker.url()).limit(1).open()) {
            Session s = c.transacted();
            Mail.send(s, queue, "m0");
            s.commit();
            MessageConsumer consumer = Client.consumer(s, queue);
            assertEquals("m0#1", Mail.label(Mail.must(consumer)));
            s.rollback();
            assertEquals("m0#2!", Mail.label(Mail.must(consumer)));
            s.commit();
        }
        if (!Reference.active()) {
            assertTrue(residentMegabytes() < 400, residentMegabytes() + " MiB resident");
        }
    }

    /** Resident memory of the broker process, 0 where it is not known. */
    private static long residentMegabytes() throws IOException {
        Path status = Path.of("/proc/" + broker.process().pid() + "/status");
        if (!Files.exists(status)) {
            return 0;
        }
        return Files.readAllLines(status).stream().filter(l -> l.startsWith("VmRSS:"))
            .mapToLong(l -> Long.parseLong(l.replaceAll("\\D+", "")) / 1024).findFirst().orElse(0);
    }

    private static Socket connect() throws IOException {
        Socket s = new Socket(InetAddress.getLoopbackAddress(), broker.port());
        s.setSoTimeout(15_000);
        return s;
    }

    /** The bytes of a proper WireFormatInfo, so that what follows gets past the first door. */
    private static byte[] greeting() throws IOException {
        OpenWireFormat format = (OpenWireFormat) new OpenWireFormatFactory().createWireFormat();
        WireFormatInfo info = format.getPreferedWireFormatInfo();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        format.marshal(info, new DataOutputStream(bytes));
        return bytes.toByteArray();
    }

    private static byte[] concat(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    private static byte[] frame(int length, byte... body) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int shift = 24; shift >= 0; shift -= 8) {
            out.write(length >> shift);
        }
        out.writeBytes(body);
        return out.toByteArray();
    }

    /** Each is sent on a connection of its own, which the broker must close. */
    static List<Object[]> closed() throws IOException {
        byte[] noise = new byte[4096];
        new Random(1).nextBytes(noise);
        noise[0] = 0; // A length that the bytes do not reach would be a half frame, which is another test.
        noise[1] = 0;
        noise[2] = 1;
        List<Object[]> out = new ArrayList<>();
        out.add(new Object[] {"noise", noise});
        out.add(new Object[] {"noise after the greeting", concat(greeting(), noise)});
        out.add(new Object[] {"http", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII)});
        out.add(new Object[] {"stomp", "CONNECT\naccept-version:1.2\nhost:x\n\n\0".getBytes(StandardCharsets.US_ASCII)});
        out.add(new Object[] {"amqp", new byte[] {'A', 'M', 'Q', 'P', 0, 1, 0, 0}});
        out.add(new Object[] {"negative length", frame(-1, (byte) 1)});
        out.add(new Object[] {"2 GB length", frame(Integer.MAX_VALUE, (byte) 1)});
        out.add(new Object[] {"unknown command", concat(greeting(), frame(5, (byte) 119, (byte) 0, (byte) 0, (byte) 0, (byte) 0))});
        out.add(new Object[] {"empty greeting", frame(1, (byte) 1)});
        return out;
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("closed")
    void is_closed(String what, byte[] bytes) throws Exception {
        try (Socket s = connect()) {
            send(s, bytes);
            if (!Reference.active()) {
                assertTrue(ends(s), what + ": still open");
            }
        }
    }

    private static void send(Socket s, byte[] bytes) {
        try {
            OutputStream out = s.getOutputStream();
            out.write(bytes);
            out.flush();
        } catch (IOException e) {
            // Closed under our hands, which is right.
        }
    }

    private static boolean ends(Socket s) throws IOException {
        byte[] buffer = new byte[8192];
        try {
            int n;
            do {
                n = s.getInputStream().read(buffer);
            } while (n >= 0);
            return true;
        } catch (SocketTimeoutException e) {
            return false;
        } catch (IOException e) {
            return true;
        }
    }

    /** A frame that announces 100 MB and sends little: memory stays bounded, however many of them. */
    @Test
    void hundred_megabytes_announced() throws Exception {
        List<Socket> open = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Socket s = connect();
            open.add(s);
            send(s, concat(greeting(), frame(100_000_000, new byte[5000])));
        }
        others_are_served();
        for (Socket s : open) {
            s.close();
        }
    }

    /** Half a frame and silence, half a greeting and goodbye. */
    @Test
    void half_frames() throws Exception {
        byte[] hello = greeting();
        List<Socket> open = new ArrayList<>();
        for (int cut = 1; cut < hello.length; cut += 7) {
            Socket s = connect();
            open.add(s);
            byte[] half = new byte[cut];
            System.arraycopy(hello, 0, half, 0, cut);
            send(s, half);
        }
        others_are_served();
        for (Socket s : open) {
            s.close();
        }
    }

    @Test
    void a_thousand_connects_and_drops() throws Exception {
        byte[] hello = greeting();
        for (int i = 0; i < 1000; i++) {
            try (Socket s = connect()) {
                if (i % 2 == 0) {
                    send(s, hello);
                }
                s.setSoLinger(i % 3 == 0, 0);
            }
        }
    }

    /** A subscriber that stops reading its socket: producers and other consumers go on. */
    @Test
    void a_client_that_never_reads() throws Exception {
        String queue = Mail.unique("unread");
        try (CuttingProxy proxy = new CuttingProxy(broker.port())) {
            Client deaf = Client.open(proxy.url());
            Client.consumer(deaf.session(Session.CLIENT_ACKNOWLEDGE), queue);
            proxy.stall();
            try (Client c = Client.open(broker.url())) {
                Session s = c.transacted();
                String[] texts = new String[500];
                for (int i = 0; i < texts.length; i++) {
                    texts[i] = i + "x".repeat(20_000);
                }
                Mail.send(s, queue, texts);
                s.commit();
                String other = Mail.unique("other");
                Mail.send(s, other, "m0");
                s.commit();
                assertEquals("m0", Mail.next(Client.consumer(s, other)));
                s.commit();
            }
            proxy.cut();
            proxy.resume();
            Client.abandon(deaf.connection);
        }
        assertEquals(500, Mail.take(broker.url(), queue, 500).size());
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The command line's contract: ready line, exit codes, one process per data directory, the admin listener. */
@Reference.Beyond("nixie's own command line")
class ServeTest {
    @TempDir Path temp;

    @Test
    void ready_line() throws Exception {
        try (BrokerProcess broker = Broker.own("ready")) {
            String line = broker.readyLine();
            assertTrue(line.matches("nixie ready openwire=tcp://127\\.0\\.0\\.1:\\d+ admin=http://127\\.0\\.0\\.1:\\d+ data="
                + Pattern.quote(broker.data().toString())), line);
            assertEquals(0, broker.terminate());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/healthz", "/livez", "/readyz", "/metrics"})
    void admin_listener(String path) throws Exception {
        try (BrokerProcess broker = Broker.own("admin")) {
            HttpRequest get = HttpRequest.newBuilder(URI.create(broker.admin() + path)).build();
            assertEquals(200, HttpClient.newHttpClient().send(get, HttpResponse.BodyHandlers.ofString()).statusCode());
        }
    }

    @Test
    void second_start_on_the_same_directory() throws Exception {
        try (BrokerProcess broker = Broker.own("locked")) {
            String said = refusal("--data", broker.data().toString(), "--listen", "tcp://127.0.0.1:0", "--admin", "");
            assertTrue(said.contains(broker.data().toString()), said);
            assertTrue(broker.alive());
        }
    }

    /** Starts serve with standard error going to the file "said". */
    private Process run(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(BrokerProcess.binary().toString(), "serve"));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectError(temp.resolve("said").toFile()).start();
    }

    /** What a process that must fail at once writes to standard error. */
    private String refusal(String... arguments) throws Exception {
        Process p = run(arguments);
        assertTrue(p.waitFor(20, TimeUnit.SECONDS), "still running");
        assertNotEquals(0, p.exitValue());
        return Files.readString(temp.resolve("said"));
    }

    @Test
    void beyond_loopback_is_refused() throws Exception {
        String said = refusal("--data", temp.resolve("d").toString(), "--listen", "tcp://0.0.0.0:0", "--admin", "");
        assertTrue(said.contains("allow-anonymous"), said);
    }

    /** --data :memory: keeps nothing, and touches no directory. */
    @Test
    void in_memory() throws Exception {
        Process p = run("--data", ":memory:", "--listen", "tcp://127.0.0.1:0", "--admin", "");
        String line = new BufferedReader(new InputStreamReader(p.getInputStream())).readLine();
        assertTrue(line.endsWith(" admin=off data=:memory:"), line);
        String url = line.replaceAll(".*openwire=(\\S+).*", "$1");
        String queue = Mail.unique("memory");
        Mail.send(url, queue, "m0");
        assertEquals(List.of("m0#1"), Mail.take(url, queue, 1));
        p.destroy();
        assertTrue(p.waitFor(20, TimeUnit.SECONDS));
        assertEquals(0, p.exitValue());
        assertFalse(Files.exists(Path.of(":memory:")));
    }

    /** A file with a setting that it does not know is named with its line, whether it starts or not. */
    @Test
    void unknown_configuration_is_named() throws Exception {
        Path file = temp.resolve("activemq.xml");
        Files.writeString(file, Files.readString(Broker.resource("prioritized.xml"))
            .replace("prioritizedMessages=\"true\"", "prioritizedMesages=\"true\""));
        Process p = run("--config", file.toString(), "--data", temp.resolve("d").toString(),
            "--listen", "tcp://127.0.0.1:0", "--admin", "");
        p.getInputStream().read(); // The ready line, or the end.
        p.destroy();
        assertTrue(p.waitFor(20, TimeUnit.SECONDS));
        String said = Files.readString(temp.resolve("said"));
        assertTrue(said.contains("prioritizedMesages") && said.contains("activemq.xml:10"), said);
    }
}

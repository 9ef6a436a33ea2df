package nixie.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One broker process with a data directory of its own. It is started by the command line that users have
 * ({@code nixie serve}), can be stopped, killed and started again on the same port and data, and writes what
 * it logs to a file whose end a failing test shows.
 */
final class BrokerProcess implements AutoCloseable {
    private static final Pattern OPENWIRE = Pattern.compile(" openwire=((?:tcp|ssl)://[^ ]+:(\\d+))");
    private static final Pattern ADMIN = Pattern.compile(" admin=(\\S+)");
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final long START_SECONDS = 60;

    private final Path data;
    private final Path log;
    private final Path config;
    private final List<String> extra;
    private String options = "";
    private boolean fileListens;
    private Process process;
    private String ready;
    private int port;
    private String admin;

    /**
     * Describes a broker; nothing runs before {@link #start}.
     *
     * @param name   names the data directory and the log
     * @param config the file for --config, or null
     * @param extra  further arguments of {@code serve}
     */
    BrokerProcess(String name, Path config, String... extra) {
        String unique = name + "-" + ProcessHandle.current().pid() + "-" + COUNT.incrementAndGet();
        Path target = Path.of(System.getProperty("interop.target", "target"));
        this.data = target.resolve("broker-data").resolve(unique).toAbsolutePath();
        this.log = target.resolve("broker-logs").resolve(unique + ".log").toAbsolutePath();
        this.config = config;
        this.extra = List.of(extra);
    }

    /** Options of the listener's URI, such as "?maximumConnections=1". */
    BrokerProcess options(String query) {
        options = query;
        return this;
    }

    /** Lets the broker listen where its file says, and nowhere else. */
    BrokerProcess fileListens() {
        fileListens = true;
        return this;
    }

    /** Where the binary is: -Dnixie.bin, else NIXIE_BIN, else bin/nixie of this repository. */
    static Path binary() {
        String named = System.getProperty("nixie.bin", System.getenv("NIXIE_BIN"));
        return named != null && !named.isEmpty() ? Path.of(named)
            : Path.of(System.getProperty("interop.target", "target"), "..", "..", "..", "bin", "nixie").normalize();
    }

    /**
     * A port that nobody uses and that the system gives to nobody who asks for any: one of those may be given to a client
     * while its broker is away, even to the one that wants to connect to it.
     */
    static int freePort() throws IOException {
        for (int i = 0; i < 1000; i++) {
            try (ServerSocket s = new ServerSocket(ThreadLocalRandom.current().nextInt(12_000, 32_000), 1, InetAddress.getLoopbackAddress())) {
                return s.getLocalPort();
            } catch (BindException e) {
                // It is in use.
            }
        }
        throw new IOException("no free port below those that the system gives");
    }

    /** Starts the process and waits for its ready line. A second start uses the port of the first. */
    BrokerProcess start() throws IOException {
        if (port != 0) {
            return start(port);
        }
        for (int i = 0; ; i++) {
            try {
                return start(freePort());
            } catch (IOException e) {
                if (i == 5 || !tail(40).contains("address already in use")) {
                    throw e;
                }
            }
        }
    }

    private BrokerProcess start(int at) throws IOException {
        Files.createDirectories(data);
        Files.createDirectories(log.getParent());
        List<String> command = new ArrayList<>(List.of(binary().toString(), "serve", "--data", data.toString(),
            "--admin", "127.0.0.1:0"));
        if (!fileListens) {
            command.addAll(List.of("--listen", "tcp://127.0.0.1:" + at + options));
        }
        if (config != null) {
            command.addAll(List.of("--config", config.toString()));
        }
        command.addAll(extra);
        process = new ProcessBuilder(command)
            .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        ready = firstLine(process);
        Matcher m = OPENWIRE.matcher(ready == null ? "" : ready);
        if (ready == null || !ready.startsWith("nixie ready ") || !m.find()) {
            process.destroyForcibly();
            throw new IOException("no ready line but '" + ready + "' from " + command + "\n" + tail(40));
        }
        port = Integer.parseInt(m.group(2));
        Matcher a = ADMIN.matcher(ready);
        admin = a.find() ? a.group(1) : "off";
        return this;
    }

    private static String firstLine(Process p) throws IOException {
        CompletableFuture<String> line = new CompletableFuture<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(
                    new InputStreamReader(p.getInputStream(), StandardCharsets.UTF_8))) {
                line.complete(in.readLine());
                while (in.readLine() != null) {
                    // Whatever follows on standard output is not ours to judge here; keep the pipe empty.
                }
            } catch (IOException e) {
                line.completeExceptionally(e);
            }
        }, "broker-stdout");
        reader.setDaemon(true);
        reader.start();
        try {
            return line.get(START_SECONDS, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IOException("no ready line within " + START_SECONDS + " s", e);
        }
    }

    /** SIGTERM, then waits for the end; returns the exit code. */
    int terminate() throws IOException, InterruptedException {
        process.destroy();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new IOException("still running 30 s after SIGTERM\n" + tail(60));
        }
        return process.exitValue();
    }

    /** SIGKILL. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor();
    }

    /** Orderly stop and start on the same port and data. */
    void restart() throws IOException, InterruptedException {
        terminate();
        start();
    }

    boolean alive() {
        return process != null && process.isAlive();
    }

    long pid() {
        return process.pid();
    }

    String url() {
        return "tcp://127.0.0.1:" + port;
    }

    /** Where all its listeners are, in the order of the file. */
    List<String> urls() {
        return OPENWIRE.matcher(ready).results().map(m -> m.group(1)).toList();
    }

    /** Address of the admin listener, or "off". */
    String admin() {
        return admin;
    }

    String readyLine() {
        return ready;
    }

    Path data() {
        return data;
    }

    Path log() {
        return log;
    }

    /** The last lines that the broker logged. */
    String tail(int lines) {
        try {
            List<String> all = Files.readAllLines(log);
            return log + ":\n" + String.join("\n", all.subList(Math.max(0, all.size() - lines), all.size()));
        } catch (IOException e) {
            return log + ": " + e;
        }
    }

    @Override
    public void close() throws IOException, InterruptedException {
        if (alive()) {
            terminate();
        }
    }
}

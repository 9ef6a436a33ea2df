package nixie.interop;

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * The broker that a test class talks to: a process of its own, or the one at -Dbroker.url. A test that
 * fails prints the end of the broker's log; a process that has died, panicked or does not end with exit
 * code 0 fails the class.
 */
final class Broker implements BeforeAllCallback, AfterAllCallback, AfterTestExecutionCallback {
    private static final String EXTERNAL = System.getProperty("broker.url", "");

    private final String config;
    private BrokerProcess process;

    private Broker(String config) {
        this.config = config;
    }

    static Broker plain() {
        return new Broker(null);
    }

    /** A broker with a configuration from the suite's resources; skipped with -Dbroker.url. */
    static Broker with(String config) {
        return new Broker(config);
    }

    /** The path of a file among the suite's resources. */
    static Path resource(String name) {
        URL url = Broker.class.getResource("/" + name);
        if (url == null) {
            throw new IllegalArgumentException("no resource " + name);
        }
        return Path.of(URI.create(url.toString()));
    }

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        if (!EXTERNAL.isEmpty()) {
            Assumptions.assumeTrue(config == null, "needs its own configuration");
            return;
        }
        process = new BrokerProcess(context.getRequiredTestClass().getSimpleName(),
            config == null ? null : resource(config)).start();
    }

    @Override
    public void afterTestExecution(ExtensionContext context) {
        if (process != null && context.getExecutionException().isPresent()) {
            System.err.println("--- " + context.getDisplayName() + ": " + process.tail(12));
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        if (process == null) {
            return;
        }
        if (!process.alive()) {
            throw new IllegalStateException("the broker had died\n" + process.tail(60));
        }
        int code = process.terminate();
        String log = Files.readString(process.log());
        if (code != 0 && !Reference.active()) {
            throw new IllegalStateException("exit code " + code + " after SIGTERM\n" + process.tail(60));
        }
        if (log.contains("panic:") || log.contains("fatal error:")) {
            throw new IllegalStateException("the broker panicked\n" + process.tail(80));
        }
    }

    String url() {
        return process == null ? EXTERNAL : process.url();
    }

    int port() {
        return URI.create(url()).getPort();
    }

    /** The process; a test that needs one is skipped with -Dbroker.url. */
    BrokerProcess process() {
        Assumptions.assumeTrue(process != null, "needs a broker process of its own");
        return process;
    }

    /** A process of its own for one test, already started. */
    static BrokerProcess own(String name) throws IOException {
        return own(name, null, "");
    }

    /** The same with a configuration, which may be null, and options of the listener's URI. */
    static BrokerProcess own(String name, Path config, String options) throws IOException {
        Assumptions.assumeTrue(EXTERNAL.isEmpty(), "needs a broker process of its own");
        return new BrokerProcess(name, config).options(options).start();
    }
}

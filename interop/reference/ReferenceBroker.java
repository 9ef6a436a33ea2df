import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.activemq.broker.BrokerFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.TransportConnector;

/**
 * A stock ActiveMQ broker behind the command line of {@code nixie serve}: the same options, the same ready
 * line, the same reaction to SIGTERM. With it the suite's tests are tried against the broker that wrote
 * the rules, restarts and kills included.
 */
public final class ReferenceBroker {
    public static void main(String[] args) throws Exception {
        String data = "reference-data";
        String config = null;
        List<String> listen = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
                case "--data" -> data = args[++i];
                case "--config" -> config = args[++i];
                case "--listen" -> listen.add(args[++i]);
                case "--admin" -> i++;
                default -> { }
            }
        }
        BrokerService broker = config == null
            ? new BrokerService()
            : BrokerFactory.createBroker(new URI("xbean:" + adapted(config, data).toUri()), false);
        if (config == null) {
            broker.setBrokerName("localhost");
        }
        for (TransportConnector c : new ArrayList<>(broker.getTransportConnectors())) {
            broker.removeConnector(c);
        }
        broker.setUseJmx(false);
        broker.setUseShutdownHook(true);
        if (data.equals(":memory:")) {
            broker.setPersistent(false);
        } else {
            broker.setDataDirectory(data);
        }
        if (listen.isEmpty()) {
            listen.add("tcp://127.0.0.1:61616");
        }
        for (String uri : listen) {
            broker.addConnector(uri);
        }
        broker.start();
        broker.waitUntilStarted();
        StringBuilder ready = new StringBuilder("nixie ready");
        for (TransportConnector c : broker.getTransportConnectors()) {
            ready.append(" openwire=tcp://127.0.0.1:").append(c.getConnectUri().getPort());
        }
        System.out.println(ready.append(" admin=off data=").append(data));
        broker.waitUntilStopped();
    }

    /** A copy of the file whose broker waits to be started and keeps its data where we say. */
    private static Path adapted(String config, String data) throws IOException {
        Path copy = Files.createTempFile("reference", ".xml");
        copy.toFile().deleteOnExit();
        String attributes = "<broker start=\"false\" useJmx=\"false\" dataDirectory=\"" + data + "\" ";
        return Files.writeString(copy, Files.readString(Path.of(config)).replaceFirst("<broker ", attributes));
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.jms.Message;
import javax.jms.MessageConsumer;

/** Whoever looks after a broker: what its admin API tells, and does. */
record Operator(BrokerProcess broker) {
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    /** What one request replies with; body is null for a GET. */
    private HttpResponse<String> ask(String path, String body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(broker.admin() + "/api/v1/" + path)).header("Content-Type", "application/json");
        if (body != null) {
            request.POST(HttpRequest.BodyPublishers.ofString(body));
        }
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private static String segment(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8);
    }

    /** What is at a path below /api/v1/. */
    String look(String path) throws IOException, InterruptedException {
        HttpResponse<String> reply = ask(path, null);
        assertEquals(200, reply.statusCode(), reply.body());
        return reply.body();
    }

    private static List<String> all(String json, String key) {
        List<String> out = new ArrayList<>();
        for (Matcher m = Pattern.compile("\"" + key + "\": *(\"[^\"]*\"|\\d+)").matcher(json); m.find(); ) {
            out.add(m.group(1).replace("\"", ""));
        }
        return out;
    }

    /** What there is of a queue's messages for a key, such as "id"; the total of messages for "total". */
    List<String> messages(String queue, String key) throws IOException, InterruptedException {
        return all(look("queues/" + segment(queue) + "/messages?limit=1000"), key);
    }

    /** Does something to messages of a queue, such as purge, and returns how many it was done to. */
    int act(String queue, String action, String which) throws IOException, InterruptedException {
        HttpResponse<String> reply = ask("queues/" + segment(queue) + "/" + action, which);
        assertEquals(200, reply.statusCode(), reply.body());
        Matcher m = Pattern.compile("\"(moved|removed|copied)\": *(\\d+)").matcher(reply.body());
        assertTrue(m.find(), reply.body());
        return Integer.parseInt(m.group(2));
    }

    /** The status of what cannot be done. */
    int refused(String queue, String action, String which) throws IOException, InterruptedException {
        return ask("queues/" + segment(queue) + "/" + action, which).statusCode();
    }

    /** The figures of a queue: "messages=0 out=0 enqueued=20", in the order asked for. */
    String figures(String queue, String... names) throws IOException, InterruptedException {
        String body = look("queues/" + segment(queue));
        List<String> out = new ArrayList<>();
        for (String name : names) {
            List<String> found = all(body, name);
            assertTrue(!found.isEmpty(), "no " + name + " in " + body);
            out.add(name + "=" + found.get(0));
        }
        return String.join(" ", out);
    }

    /** The next message of a queue, or null once it holds none: none that waits, is out, or has a delay before it comes again. */
    Message next(MessageConsumer c, String queue) throws Exception {
        for (long end = System.nanoTime() + Mail.SOON * 1_000_000; ; ) {
            Message m = c.receive(200);
            if (m != null || figures(queue, "messages").equals("messages=0")) {
                return m;
            }
            assertTrue(System.nanoTime() < end, "nothing comes, and there is something in " + queue);
        }
    }

    /** The figures are right at once, or soon: a batch may be on its way to the disk. */
    void await(String queue, String want) throws IOException, InterruptedException {
        String[] names = Stream.of(want.split(" ")).map(f -> f.substring(0, f.indexOf('='))).toArray(String[]::new);
        long end = System.nanoTime() + Mail.SOON * 1_000_000;
        String got = figures(queue, names);
        while (!got.equals(want) && System.nanoTime() < end) {
            Thread.sleep(50);
            got = figures(queue, names);
        }
        assertEquals(want, got, queue);
    }
}

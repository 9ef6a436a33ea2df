package nixie.interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * A TCP relay between client and broker that can cut connections without goodbye, stall them, and lose the
 * reply to the next request. Every open pair of sockets is treated alike.
 */
final class CuttingProxy implements AutoCloseable {
    private final ServerSocket server;
    private final int target;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final Set<Socket> frozen = ConcurrentHashMap.newKeySet();
    private final AtomicInteger accepted = new AtomicInteger();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition change = lock.newCondition();
    private boolean stalled;          // guarded by lock
    private boolean loseNextReply;    // guarded by lock: armed, waiting for a request
    private boolean cutNextRequest;   // guarded by lock: armed, the next bytes from the client are not passed on
    private boolean replyDoomed;      // guarded by lock: the request went through, its reply is to be lost
    private int lost;                 // guarded by lock
    private int held;                 // guarded by lock: relays with bytes that a stall holds back

    CuttingProxy(int target) throws IOException {
        this.target = target;
        server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        daemon(this::accept, "proxy-accept");
    }

    String url() {
        return "tcp://127.0.0.1:" + server.getLocalPort();
    }

    /** How many connections have been accepted so far. */
    int accepted() {
        return accepted.get();
    }

    private static void daemon(Runnable r, String name) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket client = server.accept();
                accepted.incrementAndGet();
                Socket broker = new Socket();
                open.add(client);
                open.add(broker);
                try {
                    broker.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), target), 2000);
                    client.setTcpNoDelay(true);
                    broker.setTcpNoDelay(true);
                } catch (IOException e) { // nobody is there, or it was cut already
                    end(client, broker);
                    continue;
                }
                daemon(() -> relay(client, broker, true), "proxy-up");
                daemon(() -> relay(broker, client, false), "proxy-down");
            } catch (IOException e) {
                return;
            }
        }
    }

    private void relay(Socket from, Socket to, boolean up) {
        byte[] buffer = new byte[64 * 1024];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (!pass(from, up)) {
                    break;
                }
                out.write(buffer, 0, n);
                out.flush();
            }
        } catch (IOException e) {
            // Cut; the other direction ends too.
        }
        end(from, to);
    }

    /** Waits out a stall; false where the connection is to be cut in place of these bytes. */
    private boolean pass(Socket from, boolean up) {
        lock.lock();
        try {
            held++;
            change.signalAll();
            try {
                while (stalled || frozen.contains(from)) {
                    if (from.isClosed()) {
                        return false;
                    }
                    change.awaitUninterruptibly();
                }
            } finally {
                held--;
            }
            if (up && cutNextRequest) {
                cutNextRequest = false;
                return false;
            }
            if (up && loseNextReply) {
                loseNextReply = false;
                replyDoomed = true;
            } else if (!up && replyDoomed) {
                replyDoomed = false;
                lost++;
                change.signalAll();
                return false;
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void end(Socket a, Socket b) {
        for (Socket s : new Socket[] {a, b}) {
            open.remove(s);
            frozen.remove(s);
            try {
                s.close();
            } catch (IOException e) {
                // Closed already.
            }
        }
    }

    /** Closes every connection now, with a reset rather than an orderly end. */
    void cut() {
        for (Socket s : open) {
            try {
                s.setSoLinger(true, 0);
                s.close();
            } catch (IOException e) {
                // Closed already.
            }
            open.remove(s);
            frozen.remove(s);
        }
        lock.lock();
        try {
            change.signalAll(); // what is frozen ends
        } finally {
            lock.unlock();
        }
    }

    /** Holds back all bytes, both ways, until {@link #resume}. */
    void stall() {
        set(true);
    }

    /** Lets the connections that are open pass no more bytes, and stay open: half-dead. Those that come are not concerned. */
    void freeze() {
        frozen.addAll(open);
    }

    void resume() {
        set(false);
    }

    private void set(boolean value) {
        lock.lock();
        try {
            stalled = value;
            change.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Lets the next request through and cuts the connection in place of the broker's next bytes. */
    void loseNextReply() {
        lock.lock();
        try {
            loseNextReply = true;
        } finally {
            lock.unlock();
        }
    }

    /** Cuts the connection in place of the client's next bytes, which do not get through. */
    void cutInsteadOfNextRequest() {
        lock.lock();
        try {
            cutNextRequest = true;
        } finally {
            lock.unlock();
        }
    }

    /** Waits until n replies have been lost since the start. */
    boolean awaitLost(int n, long millis) throws InterruptedException {
        return await(() -> lost >= n, millis);
    }

    /** Waits until a stall holds something back. */
    boolean awaitHeld(long millis) throws InterruptedException {
        return await(() -> held > 0, millis);
    }

    private boolean await(BooleanSupplier so, long millis) throws InterruptedException {
        long left = TimeUnit.MILLISECONDS.toNanos(millis);
        lock.lock();
        try {
            while (!so.getAsBoolean() && left > 0) {
                left = change.awaitNanos(left);
            }
            return so.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        resume();
        cut();
    }
}

package nixie.interop;

import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * Things that have their time, on a machine that is busy. What comes too early is wrong at once; what comes too late is
 * tried again, since a machine is late now and then, and a broker that is late is so each time.
 */
final class Pace {
    private static final int TRIES = 3;

    private Pace() { }

    /** Something that came too late. */
    private static final class Late extends AssertionError {
        Late(String message) {
            super(message);
        }
    }

    /** A test that can be run again. */
    interface Work {
        void run() throws Exception;
    }

    /** Runs a test until it is not late; it fails if it is late each time, and at once if it fails otherwise. */
    static void keeps(Work test) throws Exception {
        for (int i = 1; ; i++) {
            try {
                test.run();
                return;
            } catch (Late e) {
                if (i == TRIES) {
                    throw e;
                }
                System.err.println("tried again: " + e.getMessage());
            }
        }
    }

    /** Within {@link #keeps}: says that something was not late. */
    static void inTime(boolean so, String message) {
        if (!so) {
            throw new Late(message);
        }
    }

    /** Within {@link #keeps}: it took as long as it should, at most 50 ms less and a second more. */
    static void within(long want, long got, String what) {
        String message = what + " after " + got + " ms, want " + want;
        assertTrue(got >= want - 50, message);
        inTime(got <= want + 1000, message);
    }
}

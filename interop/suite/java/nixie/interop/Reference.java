package nixie.interop;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Whether the suite runs against ActiveMQ itself (-Dbroker.reference=true), to prove a test right. Where
 * NixieMQ promises more than ActiveMQ, a test is marked with {@link Beyond} or asks {@link #or}.
 */
final class Reference {
    private Reference() { }

    static boolean active() {
        return Boolean.getBoolean("broker.reference");
    }

    /** What is expected: {@code ours} from NixieMQ, {@code theirs} from ActiveMQ. */
    static <T> T or(T ours, T theirs) {
        return active() ? theirs : ours;
    }

    /** Marks a test that ActiveMQ fails; the value names the rule that asks for better. */
    @Target({ElementType.METHOD, ElementType.TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @ExtendWith(Skip.class)
    @interface Beyond {
        String value();
    }

    static final class Skip implements ExecutionCondition {
        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            return active()
                ? ConditionEvaluationResult.disabled("ActiveMQ does not do this")
                : ConditionEvaluationResult.enabled("");
        }
    }
}

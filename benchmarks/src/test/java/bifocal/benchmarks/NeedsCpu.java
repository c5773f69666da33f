package bifocal.benchmarks;

import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips what runs on the CPU where its platform is left out. */
final class NeedsCpu implements ExecutionCondition {
  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    return PlatformModules.detect().present().exists(module -> module.platform() == Platform.CPU)
        ? ConditionEvaluationResult.enabled("the CPU's platform is installed")
        : ConditionEvaluationResult.disabled("the CPU's platform is left out");
  }
}

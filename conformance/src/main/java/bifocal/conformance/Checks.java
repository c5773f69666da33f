package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import io.vavr.collection.Seq;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.Executable;

/** What the contract tests do again and again. */
final class Checks {
  private Checks() {}

  /** Runs batches one after the other on one rig and compares each with the reference. */
  static void agrees(BackendContract contract, Setup setup, BatchPlan... batches) {
    try (Rig<?> rig = Rig.open(contract, setup)) {
      for (BatchPlan batch : batches) {
        rig.run(batch).requireRight();
      }
    }
  }

  /** Requires that a call is refused with one of some codes. */
  static void refused(String what, ThrowingCallable call, ErrorCode... codes) {
    Throwable thrown = catchThrowable(call);
    assertThat(thrown).as(what).isInstanceOf(BifocalException.class);
    assertThat(((BifocalException) thrown).code())
        .as("%s: %s", what, thrown.getMessage())
        .isIn((Object[]) codes);
  }

  /** Requires that a call is refused, whatever the code. */
  static void refused(String what, ThrowingCallable call) {
    assertThat(catchThrowable(call)).as(what).isInstanceOf(BifocalException.class);
  }

  /** One test for each layer that runs. */
  static Stream<DynamicTest> forEach(
      BackendContract contract, Seq<Dense> layers, ThrowingConsumer check) {
    Declared declared = new Declared(contract.backend(), contract.profile());
    return layers
        .filter(declared::runs)
        .map(layer -> test(name(layer), () -> check.accept(layer)))
        .toJavaStream();
  }

  static DynamicTest test(String name, Executable executable) {
    return DynamicTest.dynamicTest(name, executable);
  }

  /** What a test does with a layer. */
  @FunctionalInterface
  interface ThrowingConsumer {
    void accept(Dense layer) throws Throwable;
  }

  /** The properties in which test layers differ. */
  static String name(Dense layer) {
    StringBuilder name = new StringBuilder();
    name.append(layer.dtype()).append(", heads ").append(layer.numHeads());
    name.append('/').append(layer.numKvHeads()).append(" of ").append(layer.headSize());
    if (layer.headSizeV() != layer.headSize()) {
      name.append('/').append(layer.headSizeV());
    }
    name.append(", cache ").append(layer.kvCacheDtype()).append(", ").append(layer.type().label());
    name.append(layer.mask().causal() ? ", causal" : ", not causal");
    layer.mask().window().forEach(w -> name.append(", window ").append(w));
    layer.mask().chunk().forEach(c -> name.append(", chunks of ").append(c));
    if (layer.mask().seesImages()) {
      name.append(", images ").append(layer.mask().images().label());
    }
    layer.softcap().forEach(cap -> name.append(", softcap ").append(cap));
    name.append(layer.alibi() ? ", ALiBi" : "").append(layer.sinks() ? ", sinks" : "");
    return name.toString();
  }
}

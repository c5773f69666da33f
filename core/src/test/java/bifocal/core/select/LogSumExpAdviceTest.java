package bifocal.core.select;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.Feature;
import bifocal.core.backend.StubBackend;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;

/** C19: ranks that share a sequence need the log-sum-exp; who has none is told who has one. */
class LogSumExpAdviceTest {
  private static final DeviceProfile DEVICE =
      new DeviceProfile.Cuda(new ComputeCapability(9, 0), HashSet.empty(), true);
  private static final AttentionRequest TWO_RANKS =
      new AttentionRequest(
          AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL),
          DEVICE,
          Option.none(),
          Deployment.PLAIN.withDecodeContextParallel(2));

  private final BackendRegistry registry = new BackendRegistry();

  @Test
  void theBackendsThatWouldDoAreListed() {
    register("WITHOUT", Feature.DCP);
    register("FITS", Feature.DCP, Feature.LSE);
    register("OF_ONE_RANK", Feature.LSE);

    assertThat(hint()).endsWith("it is returned by FITS");
  }

  @Test
  void nobodyIsListedWhereNobodyWouldDo() {
    register("WITHOUT", Feature.DCP);
    register("OF_ONE_RANK", Feature.LSE);

    assertThat(hint()).endsWith("no registered backend returns one for this layer");
  }

  private void register(String name, Feature... features) {
    registry.register(new StubBackend(name, StubBackend.PLAIN.withFeatures(features)), "a test");
  }

  /** The advice beside the refusal of the backend that returns none. */
  private String hint() {
    BackendName asked = BackendName.of("WITHOUT");
    Selector selector =
        new Selector(
            registry,
            Vector.of(new OnlyPolicy(asked)),
            (prefill, decode) -> {
              throw new AssertionError("nothing is paired");
            });
    SelectionRefusal refusal =
        selector
            .select(SelectionRequest.of(TWO_RANKS.layer(), DEVICE).with(TWO_RANKS).on(asked))
            .getError();
    return refusal.candidates().head().hint().get();
  }

  private record OnlyPolicy(BackendName only) implements PlatformPolicy {
    @Override
    public Platform platform() {
      return Platform.CUDA;
    }

    @Override
    public Option<DeviceProfile> probe() {
      return Option.none();
    }

    @Override
    public DeviceProfile simulate(DeviceDescription description) {
      return DEVICE;
    }

    @Override
    public SelectionPlan plan(SelectionRequest request) {
      return SelectionPlan.byPriority(request.asked(), Vector.of(only));
    }

    @Override
    public Seq<PriorityList> priorityLists() {
      return Vector.empty();
    }
  }

  /** C25, neighbour: a second policy of a platform does not replace the first in silence. */
  @Test
  void twoPoliciesOfOnePlatformAreRefused() {
    PlatformPolicy one = new OnlyPolicy(BackendName.of("ONE"));
    PlatformPolicy two = new OnlyPolicy(BackendName.of("TWO"));

    assertRefused(
            ErrorCode.INVALID_COMPOSITION,
            () ->
                new Selector(
                    registry,
                    Vector.of(one, two),
                    (prefill, decode) -> {
                      throw new AssertionError("nothing is paired");
                    }))
        .contains("policies of platform cuda")
        .contains("OnlyPolicy");
  }
}

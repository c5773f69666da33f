package bifocal.cuda.flashattention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a step says of itself. */
class FlashAttentionStepTest {
  private static final TensorView NOTHING =
      TensorView.ofHost(Arena.global().allocate(4), DType.INT32, 0);

  private static final WorkspaceView NO_WORKSPACE =
      new WorkspaceView() {
        @Override
        public MemorySegment region(String name) {
          return MemorySegment.NULL;
        }

        @Override
        public MemorySegment lease(long bytes, long alignment) {
          return MemorySegment.NULL;
        }

        @Override
        public WorkspaceView child(String prefix) {
          return this;
        }

        @Override
        public void requireOpen() {}

        @Override
        public void markDirty() {}
      };

  private static Call call(ForwardKey.Sight sight) {
    return new Call(
        new ForwardKey(DType.BF16, 256, 2, 64, sight), 0, 0, NOTHING, NOTHING, NOTHING, NOTHING);
  }

  @Test
  void observersAreToldTheForwardsThatRun() {
    FlashAttentionStep step =
        new FlashAttentionStep(
            NO_WORKSPACE,
            0,
            -1,
            List.of(call(ForwardKey.Sight.CAUSAL), call(ForwardKey.Sight.BOUNDS)),
            NOTHING);

    assertThat(step.kernels())
        .isEqualTo(
            "FlashAttention 4 forward, causal, bf16, head size 256, 2 query heads of a key/value head,"
                + " blocks of 64; FlashAttention 4 forward, bounds, bf16, head size 256, 2 query"
                + " heads of a key/value head, blocks of 64");
  }
}

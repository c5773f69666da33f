package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** In which order tiles are launched, and how their memory looks. */
class TileListTest {
  private static StepTiles tiles(int... queryAndSeqLens) {
    int live = queryAndSeqLens.length / 2;
    int[] starts = new int[live + 1];
    int[] seqLens = new int[live];
    for (int r = 0; r < live; r++) {
      starts[r + 1] = starts[r] + queryAndSeqLens[2 * r];
      seqLens[r] = queryAndSeqLens[2 * r + 1];
    }
    TensorView table =
        TensorView.ofHost(Arena.ofAuto().allocate(live * 4L, 4), DType.INT32, live, 1);
    TensorView slots =
        TensorView.ofHost(Arena.ofAuto().allocate(starts[live] * 8L, 8), DType.INT64, starts[live]);
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(starts, seqLens, table, new SlotMapping(slots)).build();
    return StepTiles.of(batch, new WindowCursor(batch, AttentionMask.CAUSAL), 10, 4);
  }

  @Test
  void requestsOfFewQueriesAreDecodesAndOthersAreCutIntoTiles() {
    StepTiles tiles = tiles(25, 25, 1, 90, 4, 7, 5, 5);

    assertThat(tiles.prefill().size()).isEqualTo(4);
    assertThat(tiles.decode().size()).isEqualTo(2);
    assertThat(tiles.firstDecodeRow()).isEqualTo(25);
    assertThat(tiles.endDecodeRow()).isEqualTo(30);
    assertThat(tiles.decodeRows()).isEqualTo(5);
  }

  @Test
  void tilesThatSeeMostKeysComeFirst() {
    StepTiles tiles = tiles(25, 25, 12, 40);

    assertThat(visibleInOrder(tiles.prefill(), tiles.prefill().byFallingCost()))
        .containsExactly(40, 38, 25, 20, 10);
  }

  @Test
  void pairsGoRequestByRequestAndEvenOut() {
    StepTiles tiles = tiles(25, 25, 40, 40);

    int[] order = tiles.prefill().inPairs();

    assertThat(visibleInOrder(tiles.prefill(), order))
        .containsExactly(40, 10, 30, 20, 25, 10, 20, -1);
  }

  @Test
  void memoryHoldsTheTilesThenPadding() {
    StepTiles tiles = tiles(1, 7);
    MemorySegment memory = Arena.ofAuto().allocate(3 * TileList.BYTES, 8).fill((byte) 1);

    tiles.decode().write(new int[] {0}, 3, memory, 0);

    assertThat(memory.toArray(ValueLayout.JAVA_INT))
        .containsExactly(
            0, 1, 6, 7, -1, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 0);
  }

  private static int[] visibleInOrder(TileList tiles, int[] order) {
    int[] visible = new int[order.length];
    for (int i = 0; i < order.length; i++) {
      visible[i] = order[i] < 0 ? -1 : tiles.visible(order[i]);
    }
    return visible;
  }
}

package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.cache.PageTable;
import bifocal.core.device.Device;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.engine.GroupStep;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.reference.Agreement;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.Tolerance;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A host's own memory and block manager: pages of 64 tokens, in which the records of two layers lie
 * one beside the other, handed out in an order of the host's; kernels see blocks of 32.
 */
final class HostManagedCacheTest {
  private static final int PAGE = 64;
  private static final int BLOCK = 32;
  private static final int PAGES = 9;
  private static final int LAYERS = 2;

  /** Pages by request, as a host's manager left them. */
  private static final int[][] TABLE = {{7, 2, 5}, {3, 8, 0}};

  private static final int[] LENGTHS = {150, 70};
  private static final int[][] IMAGES = {{20, 45, 100, 139}, {}};

  static Stream<Arguments> caches() {
    KvScales perTensor = new KvScales.PerTensor(0.02f, 0.03f);
    KvScales perHead = new KvScales.PerHead(new float[] {0.02f, 0.05f}, new float[] {0.03f, 0.01f});
    return Stream.of(
        Arguments.of(KvCacheDtype.AUTO, KvScales.ONE),
        Arguments.of(KvCacheDtype.FP8_E4M3, KvScales.ONE),
        Arguments.of(KvCacheDtype.FP8_E4M3, perTensor),
        Arguments.of(KvCacheDtype.FP8_E4M3, perHead),
        Arguments.of(KvCacheDtype.FP8_E5M2, KvScales.ONE),
        Arguments.of(KvCacheDtype.FP8_E5M2, perTensor),
        Arguments.of(KvCacheDtype.FP8_E5M2, perHead),
        Arguments.of(KvCacheDtype.INT8_PER_TOKEN_HEAD, KvScales.ONE),
        Arguments.of(KvCacheDtype.FP8_PER_TOKEN_HEAD, KvScales.ONE));
  }

  @ParameterizedTest
  @MethodSource("caches")
  void everyFormOfCacheAgreesWithTheReference(KvCacheDtype dtype, KvScales scales) {
    for (Lowering lowering : new Lowering[] {Lowering.OFF, Lowering.BOTH_WINDOWS}) {
      Dense layer =
          Dense.decoder(
                  8,
                  2,
                  64,
                  DType.BF16,
                  AttentionMask.CAUSAL.withWindow(50).withImages(ImageMask.CLAMP_PAST))
              .withKvCacheDtype(dtype);
      try (Scene scene = new Scene(layer, BLOCK, scales, 3)) {
        Host host = new Host(scene);
        host.step(lowering, LENGTHS, LENGTHS, IMAGES);
        host.step(lowering, new int[] {1, 3}, new int[] {151, 73}, IMAGES);
      }
    }
  }

  @Test
  void pagesOutsideTheHostsMemoryAreRefusedBeforeAnyKernel() {
    Dense layer = Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL);
    try (Scene scene = new Scene(layer, BLOCK, KvScales.ONE, 3)) {
      Host host = new Host(scene);
      host.table.setAtIndex(ValueLayout.JAVA_INT, 1, PAGES);
      BifocalException refusal =
          catchThrowableOfType(
              BifocalException.class,
              () -> host.step(Lowering.OFF, LENGTHS, LENGTHS, new int[2][0]));
      assertThat(refusal.code()).isIn(ErrorCode.BLOCK_OUT_OF_RANGE, ErrorCode.SLOT_OUT_OF_RANGE);
    }
  }

  /** A host with a block manager of its own. */
  private static final class Host {
    private final Scene scene;
    private final KvCacheSpec spec;
    private final MemorySegment table;
    private final KvCacheView[] caches = new KvCacheView[LAYERS];

    Host(Scene scene) {
      this.scene = scene;
      this.spec = scene.spec;
      long record = spec.blockBytes();
      long stride = LAYERS * record;
      int blocks = PAGES * PAGE / BLOCK;
      MemorySegment memory = scene.arena.allocate(blocks * stride, 64);
      // All ones is NaN in every floating-point type; the null page is zero.
      memory.asSlice(stride * PAGE / BLOCK).fill((byte) 0xFF);
      for (int i = 0; i < LAYERS; i++) {
        caches[i] =
            KvCacheView.wrap(
                memory.asSlice(i * record, (blocks - 1) * stride + record),
                spec,
                Device.HOST,
                blocks,
                stride);
      }
      this.table = scene.arena.allocate((long) TABLE.length * TABLE[0].length * 4, 4);
      for (int r = 0; r < TABLE.length; r++) {
        for (int p = 0; p < TABLE[r].length; p++) {
          table.setAtIndex(ValueLayout.JAVA_INT, (long) r * TABLE[r].length + p, TABLE[r][p]);
        }
      }
    }

    void step(Lowering lowering, int[] queries, int[] keys, int[][] images) {
      CpuRuntime runtime = CpuRuntime.ofThisJvm();
      AttentionBackend<?> composite =
          CompositeBackends.createCompositeBackendOrThrow(
              new FlexAttentionBackend(runtime),
              new CpuAttnBackend(runtime),
              new MMPrefixAttentionRouting().withLowering(lowering));
      CommonAttentionMetadata batch = batch(queries, keys, images);
      LayerGroup group = new LayerGroup("host", scene.layer, Vector.of("first", "second"));
      WorkspacePlan plan = composite.workspace(group, spec, new BatchLimits(8, 512, 512));
      Workspace workspace =
          Workspace.wrap(
              scene.arena.allocate(plan.totalBytes(1), WorkspacePlan.ALIGNMENT), plan, 1);
      try (GroupRuntime<?> layers = GroupRuntime.open(composite, group, spec);
          Workspace.Step lease = workspace.openStep()) {
        GroupStep<?> step = layers.step(new StepContext(scene.launch, lease, 0), batch);
        for (int i = 0; i < LAYERS; i++) {
          layer(step, i, batch);
        }
      }
    }

    private void layer(GroupStep<?> step, int index, CommonAttentionMetadata batch) {
      Dense layer = scene.layer;
      int tokens = batch.tokens();
      TensorView q = scene.random(DType.BF16, 1, tokens, layer.numHeads(), layer.headSize());
      AttentionOutput output = scene.output(tokens);
      step.writeKv(
          index,
          new KvInput.Dense(
              scene.random(DType.BF16, 1, tokens, layer.numKvHeads(), layer.headSize()),
              scene.random(DType.BF16, 1, tokens, layer.numKvHeads(), layer.headSizeV())),
          caches[index]);
      step.forward(index, q, caches[index], output);
      Agreement agreement =
          Agreement.of(
              ReferenceAttention.of(layer, LayerParameters.NONE)
                  .all(q, KeyValues.cached(caches[index], batch), batch),
              output);
      assertThat(agreement.within(Tolerance.of(DType.BF16))).as(agreement.toString()).isTrue();
    }

    /** The host's pages as the kernels' blocks, and the slots in either. */
    private CommonAttentionMetadata batch(int[] queries, int[] keys, int[][] images) {
      int columns = TABLE[0].length;
      PageTable pages = new PageTable(PAGE, BLOCK);
      int[] starts = {0, queries[0], queries[0] + queries[1]};
      MemorySegment blocks =
          scene.arena.allocate((long) TABLE.length * columns * pages.blocksPerPage() * 4, 4);
      TensorView kernelTable =
          TensorView.ofHost(
              blocks, DType.INT32, TABLE.length, (long) columns * pages.blocksPerPage());
      pages.expand(
          TensorView.ofHost(table, DType.INT32, TABLE.length, columns), kernelTable, TABLE.length);
      MemorySegment slots = scene.arena.allocate(8L * starts[2], 8);
      for (int r = 0; r < queries.length; r++) {
        for (int i = 0; i < queries[r]; i++) {
          int position = keys[r] - queries[r] + i;
          long page = table.getAtIndex(ValueLayout.JAVA_INT, (long) r * columns + position / PAGE);
          slots.setAtIndex(
              ValueLayout.JAVA_LONG, (long) starts[r] + i, page * PAGE + position % PAGE);
        }
      }
      return CommonAttentionMetadata.builder(
              starts,
              keys,
              kernelTable,
              new SlotMapping(TensorView.ofHost(slots, DType.INT64, starts[2])))
          .images(ImageRanges.of(images, queries.length))
          .build();
    }
  }
}

package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.PreparedLaunch;
import bifocal.cuda.pack.GridWord;
import io.vavr.control.Option;
import java.lang.foreign.Arena;

/**
 * The launches of one attention kernel for one layer. What a layer fixes is set once; each forward
 * sets addresses and strides. Nothing is allocated after the first forward over a cache.
 */
final class AttentionLaunch {
  private final PreparedLaunch launch;
  private final int kvHeads;
  private final int multiprocessors;
  private final boolean persistent;
  private final boolean divided;
  private final CacheArguments cache;
  private final int q;
  private final int qStrideToken;
  private final int qStrideHead;
  private final OutputArguments output;
  private final int tiles;
  private final int keyLow;
  private final int keyHigh;
  private final int blockTable;
  private final int blockTableStride;
  private final int partialOut;
  private final int partialLse;
  private final int splits;
  private final int numTiles;
  private final int tilesPerUnit;

  AttentionLaunch(
      CudaContext context,
      LoadedKernel kernel,
      AttentionLayerSpec.Dense layer,
      CacheGeometry geometry,
      LayerConstants constants,
      Arena arena) {
    this.launch = kernel.prepare(arena);
    this.kvHeads = layer.numKvHeads();
    this.multiprocessors = context.device().multiprocessors();
    this.persistent = kernel.entry().grid().x() == GridWord.Count.PROGRAMS;
    this.divided = kernel.entry().grid().z() == GridWord.Count.SPLITS;
    this.q = kernel.index("q");
    this.qStrideToken = kernel.index("q_stride_token");
    this.qStrideHead = kernel.index("q_stride_head");
    this.output = new OutputArguments(kernel);
    this.tiles = kernel.index("tiles");
    this.keyLow = kernel.index("key_low");
    this.keyHigh = kernel.index("key_high");
    this.blockTable = kernel.index("block_table");
    this.blockTableStride = kernel.index("block_table_stride");
    this.partialOut = kernel.index("partial_out");
    this.partialLse = kernel.index("partial_lse");
    this.splits = kernel.index("num_splits");
    this.numTiles = kernel.index("num_tiles");
    this.tilesPerUnit = kernel.index("tiles_per_unit");
    this.cache = CacheArguments.of(context, kernel, launch, geometry, constants, arena);
    setConstants(kernel, layer, constants);
  }

  private void setConstants(
      LoadedKernel kernel, AttentionLayerSpec.Dense layer, LayerConstants constants) {
    launch.setFloat(kernel.index("softmax_scale"), (float) layer.scale());
    launch.setFloat(kernel.index("softcap"), layer.softcap().getOrElse(0.0).floatValue());
    launch.setLong(kernel.index("sinks"), constants.sinks());
    launch.setInt(kernel.index("has_sinks"), layer.sinks() ? 1 : 0);
    launch.setLong(kernel.index("alibi_slopes"), constants.alibiSlopes());
    if (kernel.index("num_kv_heads") != LoadedKernel.NONE) {
      launch.setInt(kernel.index("num_kv_heads"), kvHeads);
    }
    launch.setLong(kernel.index("global_scratch"), 0);
    launch.setLong(kernel.index("profile_scratch"), 0);
  }

  /** Launches a step's tiles. */
  void run(
      CudaStream stream,
      TensorView query,
      KvCacheView view,
      TritonStep step,
      TritonStep.Tiles list,
      TensorView out,
      Option<TensorView> lse) {
    launch.setLong(q, query.address());
    launch.setLong(qStrideToken, query.stride(0));
    launch.setLong(qStrideHead, query.stride(1));
    output.set(launch, out, lse);
    launch.setLong(tiles, list.address());
    launch.setLong(keyLow, step.keyLow());
    launch.setLong(keyHigh, step.keyHigh());
    launch.setLong(blockTable, step.blockTable());
    launch.setLong(blockTableStride, step.blockTableStride());
    cache.set(view);
    if (persistent) {
      runPersistent(stream, list);
    } else {
      runTiles(stream, step, list);
    }
  }

  private void runPersistent(CudaStream stream, TritonStep.Tiles list) {
    launch.setInt(numTiles, list.count());
    launch.setInt(tilesPerUnit, list.perUnit());
    long units = (long) list.count() / list.perUnit() * kvHeads;
    launch.launch(stream, (int) Math.min(multiprocessors, units), 1, 1);
  }

  private void runTiles(CudaStream stream, TritonStep step, TritonStep.Tiles list) {
    int programs = divided ? step.splits() : 1;
    launch.setInt(splits, programs);
    launch.setLong(partialOut, step.partialOut());
    launch.setLong(partialLse, step.partialLse());
    launch.launch(stream, list.count(), kvHeads, programs);
  }
}

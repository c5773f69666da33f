package bifocal.cuda.triton;

import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.PreparedLaunch;
import io.vavr.control.Option;
import java.lang.foreign.Arena;

/** Launches that put the parts of divided decodes together. */
final class MergeLaunch {
  private final PreparedLaunch launch;
  private final OutputArguments output;
  private final int queryHeads;
  private final int tileTokens;
  private final int partialOut;
  private final int partialLse;
  private final int tiles;
  private final int splits;

  /**
   * @param tileTokens most query tokens of a tile of the kernel that made the parts
   */
  MergeLaunch(LoadedKernel kernel, int queryHeads, int tileTokens, Arena arena) {
    this.launch = kernel.prepare(arena);
    this.output = new OutputArguments(kernel);
    this.queryHeads = queryHeads;
    this.tileTokens = tileTokens;
    this.partialOut = kernel.index("partial_out");
    this.partialLse = kernel.index("partial_lse");
    this.tiles = kernel.index("tiles");
    this.splits = kernel.index("num_splits");
    launch.setLong(kernel.index("global_scratch"), 0);
    launch.setLong(kernel.index("profile_scratch"), 0);
  }

  void run(CudaStream stream, TritonStep step, TensorView out, Option<TensorView> lse) {
    output.set(launch, out, lse);
    launch.setLong(partialOut, step.partialOut());
    launch.setLong(partialLse, step.partialLse());
    launch.setLong(tiles, step.decode().address());
    launch.setInt(splits, step.splits());
    launch.launch(stream, step.decode().count(), queryHeads, tileTokens);
  }
}

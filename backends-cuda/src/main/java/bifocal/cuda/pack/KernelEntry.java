package bifocal.cuda.pack;

import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * One kernel of a pack.
 *
 * @param key its name in the pack
 * @param file binary, in the pack's directory
 * @param sha256 hash of the binary, in lower-case hexadecimal digits
 * @param symbol entry point in the binary
 * @param specialisation what it was compiled for
 * @param threads threads of a block
 * @param sharedMemory dynamic shared memory of a block, in bytes
 * @param globalScratch bytes of scratch memory for each block
 * @param profileScratch bytes of profiling memory for each block
 * @param tile what one program of an attention kernel works on; absent for other kernels
 * @param grid how the grid is made
 * @param programmaticLaunch whether the launch may start while the one before it still runs
 * @param arguments every parameter, in order
 */
public record KernelEntry(
    String key,
    String file,
    String sha256,
    String symbol,
    Specialisation specialisation,
    int threads,
    int sharedMemory,
    int globalScratch,
    int profileScratch,
    Option<Tile> tile,
    Grid grid,
    boolean programmaticLaunch,
    Seq<KernelArgument> arguments) {

  /**
   * What one program works on.
   *
   * @param rows rows of the matrix product: query tokens times query heads of a KV head
   * @param tokens most query tokens
   * @param keys keys of one step
   */
  public record Tile(int rows, int tokens, int keys) {}

  /**
   * Words that say how a launch makes its grid; see {@link GridWord}.
   *
   * @param x first axis
   * @param y second axis
   * @param z third axis
   */
  public record Grid(GridWord x, GridWord y, GridWord z) {}
}

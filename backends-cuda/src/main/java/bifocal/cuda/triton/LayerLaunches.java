package bifocal.cuda.triton;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.pack.KernelEntry;
import bifocal.cuda.pack.Specialisation.Attention;
import io.vavr.control.Option;
import java.lang.foreign.Arena;

/**
 * The launches of one layer into outputs of one type.
 *
 * @param prefill of tiles of many queries; absent when the pack is for decoding
 * @param decode of tiles of few queries
 * @param merge of divided decodes
 */
record LayerLaunches(Option<AttentionLaunch> prefill, AttentionLaunch decode, MergeLaunch merge) {

  static LayerLaunches of(
      TritonDevice device,
      LayerKernels kernels,
      AttentionLayerSpec.Dense layer,
      CacheGeometry geometry,
      LayerConstants constants,
      Arena arena) {
    LoadedKernel decoding = device.kernel(kernels.decode());
    return new LayerLaunches(
        kernels
            .prefill(device.pack())
            .toOption()
            .map(
                wanted ->
                    new AttentionLaunch(
                        device.context(),
                        device.kernel(wanted),
                        layer,
                        geometry,
                        constants,
                        arena)),
        new AttentionLaunch(device.context(), decoding, layer, geometry, constants, arena),
        new MergeLaunch(
            device.kernel(kernels.merge()), layer.numHeads(), decoding.tile().tokens(), arena));
  }

  /**
   * The launches into fp32, where the pack has their kernels and these take the tiles that steps
   * are cut into for the others.
   */
  static Option<LayerLaunches> widened(
      TritonDevice device,
      LayerKernels kernels,
      AttentionLayerSpec.Dense layer,
      CacheGeometry geometry,
      LayerConstants constants,
      Arena arena) {
    LayerKernels wide = kernels.widened();
    boolean usable =
        device.pack().find(wide.decode()).isValid()
            && device.pack().find(wide.merge()).isValid()
            && tile(device, wide.decode()).equals(tile(device, kernels.decode()))
            && kernels
                .prefill(device.pack())
                .toOption()
                .forAll(narrow -> takesTiles(device, wide, narrow));
    return Option.when(usable, () -> of(device, wide, layer, geometry, constants, arena));
  }

  private static boolean takesTiles(TritonDevice device, LayerKernels wide, Attention narrow) {
    return wide.prefill(device.pack()).isValid()
        && tile(device, wide.prefill()).tokens() >= tile(device, narrow).tokens();
  }

  private static KernelEntry.Tile tile(TritonDevice device, Attention kernel) {
    return device.kernel(kernel).tile();
  }

  /** Runs a step: tiles of many queries, tiles of few, and the merge where these were divided. */
  void run(
      CudaStream stream, TensorView q, KvCacheView view, TritonStep step, AttentionOutput output) {
    if (step.prefill().count() > 0) {
      prefill.get().run(stream, q, view, step, step.prefill(), output.out(), output.lse());
    }
    if (step.decode().count() > 0) {
      decode.run(stream, q, view, step, step.decode(), output.out(), output.lse());
      if (step.splits() > 1) {
        merge.run(stream, step, output.out(), output.lse());
      }
    }
  }
}

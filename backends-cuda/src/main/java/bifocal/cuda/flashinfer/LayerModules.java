package bifocal.cuda.flashinfer;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.PackRefusal;
import io.vavr.control.Option;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The modules of a pack that serve a layer.
 *
 * @param wanted the prefill that serves any batch; what is missing is called by its name
 * @param few for runs of few queries
 * @param many for runs of many queries
 * @param single for runs of one query
 * @param xqa for batches of one query a request
 */
record LayerModules(
    ModuleKey.Prefill wanted,
    Option<ModuleKey.Prefill> few,
    Option<ModuleKey.Prefill> many,
    Option<ModuleKey.Decode> single,
    Option<ModuleKey.Xqa> xqa) {

  /** Queries up to which a run counts as few: its keys are divided among programs. */
  static final int FEW = 8;

  static LayerModules of(FlashInferPack pack, AttentionLayerSpec.Dense layer, int blockSize) {
    boolean window = layer.mask().leftWindow() >= 0;
    boolean cap = layer.softcap().isDefined();
    int head = layer.headSize();
    ModuleKey.Prefill exact = new ModuleKey.Prefill(Engine.FA2, layer.dtype(), head, window, cap);
    Option<ModuleKey.Prefill> fa2 =
        present(pack, exact)
            .orElse(
                () ->
                    present(
                        pack, new ModuleKey.Prefill(Engine.FA2, layer.dtype(), head, true, cap)));
    Option<ModuleKey.Prefill> fa3 =
        present(pack, new ModuleKey.Prefill(Engine.FA3, layer.dtype(), head, window, cap));
    Option<ModuleKey.Decode> single =
        present(pack, new ModuleKey.Decode(layer.dtype(), head, window, cap))
            .orElse(() -> present(pack, new ModuleKey.Decode(layer.dtype(), head, true, cap)))
            .filter(key -> dividesOnCores(layer.groupSize()));
    Option<ModuleKey.Xqa> xqa =
        Option.when(
                !cap, new ModuleKey.Xqa(layer.dtype(), head, blockSize, layer.groupSize(), window))
            .flatMap(key -> present(pack, key));
    return new LayerModules(exact, fa2.orElse(fa3), fa3.orElse(fa2), single, xqa);
  }

  /** Groups that the decode kernels were written for. */
  private static boolean dividesOnCores(int group) {
    return switch (group) {
      case 1, 2, 3, 4, 6, 8 -> true;
      default -> false;
    };
  }

  private static <K extends ModuleKey> Option<K> present(FlashInferPack pack, K key) {
    return Option.when(pack.has(key), key);
  }

  /** What no batch can do without. */
  Option<PackRefusal> missing(FlashInferPack pack) {
    return many.isDefined() ? Option.none() : Option.some(pack.find(wanted).getError());
  }

  /** Names of the kernels, in the order of their use. */
  String label() {
    return Stream.of(many, few, single, xqa)
        .flatMap(Option::toJavaStream)
        .map(ModuleKey::label)
        .distinct()
        .collect(Collectors.joining(", "));
  }
}

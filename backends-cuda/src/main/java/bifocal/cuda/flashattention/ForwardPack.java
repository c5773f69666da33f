package bifocal.cuda.flashattention;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.FileFailure;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.cuda.pack.PackFile;
import bifocal.cuda.pack.PackRefusal;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Forwards in a directory, whose manifest was read and found to be for a device. Files are checked
 * when they are asked for.
 *
 * @param directory where it is
 * @param target architecture that the forwards were compiled for
 * @param modules what there is
 * @param runtime files that forwards need, with their sha256
 * @param needed a library that whoever runs them installs, beside them
 */
public record ForwardPack(
    Path directory,
    String target,
    Map<ForwardKey, ForwardEntry> modules,
    Map<String, String> runtime,
    String needed) {
  /** Folder of these packs beside those of other kernels. */
  public static final String FOLDER = "fa4";

  static final String REMEDY = "build the pack with kernels/fa4/build_forward.py";

  private static final String TARGET = "sm_90a";
  private static final String MANIFEST = "manifest.json";

  /**
   * Opens the pack of a device.
   *
   * @param packs directory that holds a folder {@link #FOLDER} of one pack a target
   */
  public static Validation<PackRefusal, ForwardPack> open(Path packs, ComputeCapability device) {
    if (device.major() != 9 || device.minor() != 0) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.TARGET, "FlashAttention forwards", device.toString(), "9.0", ""));
    }
    Path directory = packs.resolve(FOLDER).resolve(TARGET);
    Path file = directory.resolve(MANIFEST);
    if (!Files.isRegularFile(file)) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.NOT_FOUND,
              "FlashAttention forwards",
              "nothing at " + file,
              "a pack",
              REMEDY));
    }
    try {
      return ForwardManifest.read(directory, Files.readString(file, StandardCharsets.UTF_8))
          .flatMap(ForwardPack::forDevice);
    } catch (IOException e) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.NOT_FOUND,
              file.toString(),
              "unreadable: " + FileFailure.reason(e),
              "a readable file",
              ""));
    }
  }

  private Validation<PackRefusal, ForwardPack> forDevice() {
    return target.equals(TARGET)
        ? Validation.valid(this)
        : Validation.invalid(
            new PackRefusal(
                PackRefusal.Code.TARGET,
                "FlashAttention forwards in " + directory,
                "forwards for " + target,
                TARGET,
                REMEDY));
  }

  /** The forward that was compiled for this, or what is missing. */
  Validation<PackRefusal, ForwardEntry> find(ForwardKey wanted) {
    return modules
        .get(wanted)
        .toValidation(
            new PackRefusal(
                PackRefusal.Code.KERNEL_MISSING,
                "FlashAttention forwards in " + directory,
                "no " + wanted.label(),
                "one",
                "add it to the variants of kernels/fa4/build_forward.py and build the pack again;"
                    + " FlashAttention 4 has head sizes up to 256 on 9.0"));
  }

  /** The first forward of these that is not there. */
  Option<PackRefusal> lacks(Seq<ForwardKey> wanted) {
    return wanted.map(this::find).find(Validation::isInvalid).map(Validation::getError);
  }

  boolean has(ForwardKey wanted) {
    return modules.containsKey(wanted);
  }

  /** Block sizes that there are forwards for. */
  Seq<Integer> pageSizes(AttentionLayerSpec.Dense layer) {
    return modules
        .keySet()
        .toVector()
        .filter(key -> ForwardKey.allOf(layer, key.pageSize()).forAll(this::has))
        .map(ForwardKey::pageSize)
        .distinct()
        .sorted();
  }

  /** File of a forward, if it is the one that the manifest names and can be loaded. */
  Validation<PackRefusal, Path> file(ForwardEntry entry) {
    return missing()
        .<Validation<PackRefusal, Path>>map(Validation::invalid)
        .getOrElse(
            () ->
                new PackFile(directory, entry.file(), entry.sha256())
                    .checked(entry.key().label(), REMEDY));
  }

  /** What forwards need, if it is not there. */
  public Option<PackRefusal> missing() {
    return Option.when(
        !Files.exists(directory.resolve(needed)),
        () ->
            new PackRefusal(
                PackRefusal.Code.FILE_MISSING,
                "library of NVIDIA that FlashAttention forwards need",
                "nothing at " + directory.resolve(needed),
                needed,
                "install nvidia-cutlass-dsl-libs-cu13 and put its " + needed + " there"));
  }

  /** A file that forwards need and the pack has. */
  Validation<PackRefusal, Path> runtimeFile(String name) {
    return runtime
        .get(name)
        .toValidation(
            new PackRefusal(
                PackRefusal.Code.FILE_MISSING,
                "FlashAttention forwards in " + directory,
                "no " + name + " among the runtime files of the manifest",
                "one",
                REMEDY))
        .flatMap(sha256 -> new PackFile(directory, name, sha256).checked(name, REMEDY));
  }
}

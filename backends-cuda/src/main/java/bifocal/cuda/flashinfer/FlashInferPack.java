package bifocal.cuda.flashinfer;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.FileFailure;
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
 * Modules in a directory, whose manifest was read and found to be for a device. Files are checked
 * when they are asked for.
 *
 * @param directory where it is
 * @param target architecture that the modules were compiled for, for instance {@code sm_90a}
 * @param modules what there is
 * @param runtime files that modules need, with their sha256
 */
public record FlashInferPack(
    Path directory,
    String target,
    Map<ModuleKey, ModuleEntry> modules,
    Map<String, String> runtime) {
  /** Folder of these packs beside those of other kernels. */
  public static final String FOLDER = "flashinfer";

  static final String MANIFEST = "manifest.json";
  private static final String REMEDY =
      "build one: mvn -Pkernels-cuda package -Dprofile=gemma-4-31b, or kernels/flashinfer";

  /** The target whose modules a device runs. */
  static String target(ComputeCapability capability) {
    String sm = "sm_" + capability.major() + capability.minor();
    return capability.major() >= 9 ? sm + "a" : sm;
  }

  /**
   * Opens the pack of a device.
   *
   * @param packs directory that holds a folder {@link #FOLDER} of one pack a target, or such packs
   *     themselves
   */
  public static Validation<PackRefusal, FlashInferPack> open(Path packs, ComputeCapability device) {
    String target = target(device);
    Option<Path> found =
        Option.ofOptional(
            java.util.stream.Stream.of(packs.resolve(FOLDER).resolve(target), packs.resolve(target))
                .filter(directory -> Files.isRegularFile(directory.resolve(MANIFEST)))
                .findFirst());
    return found
        .toValidation(
            new PackRefusal(
                PackRefusal.Code.NOT_FOUND,
                "FlashInfer modules for " + target,
                "nothing at " + packs.resolve(FOLDER).resolve(target).resolve(MANIFEST),
                "a pack",
                REMEDY))
        .flatMap(directory -> read(directory, target));
  }

  private static Validation<PackRefusal, FlashInferPack> read(Path directory, String target) {
    Path file = directory.resolve(MANIFEST);
    try {
      return ModuleManifest.read(directory, Files.readString(file, StandardCharsets.UTF_8))
          .flatMap(
              pack ->
                  pack.target().equals(target)
                      ? Validation.valid(pack)
                      : Validation.invalid(
                          new PackRefusal(
                              PackRefusal.Code.TARGET,
                              "FlashInfer modules in " + directory,
                              "modules for " + pack.target(),
                              target,
                              "build them for this device")));
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

  /** The module that was compiled for this, or what is missing. */
  Validation<PackRefusal, ModuleEntry> find(ModuleKey wanted) {
    return modules
        .get(wanted)
        .toValidation(
            new PackRefusal(
                PackRefusal.Code.KERNEL_MISSING,
                "FlashInfer modules in " + directory,
                "no module for " + wanted.label(),
                "one",
                "add it to a profile of kernels/flashinfer and build the pack again"));
  }

  boolean has(ModuleKey wanted) {
    return modules.containsKey(wanted);
  }

  /** File of a module, if it is the one that the manifest names. */
  Validation<PackRefusal, Path> file(ModuleEntry module) {
    return checked(module.key().label(), module.file(), module.sha256());
  }

  /** A file that modules need. */
  Validation<PackRefusal, Path> runtimeFile(String name) {
    return runtime
        .get(name)
        .toValidation(
            new PackRefusal(
                PackRefusal.Code.FILE_MISSING,
                "FlashInfer modules in " + directory,
                "no " + name + " among the runtime files of the manifest",
                "one",
                REMEDY))
        .flatMap(sha256 -> checked(name, name, sha256));
  }

  /** Names of the modules. */
  Seq<String> labels() {
    return modules.keySet().toVector().map(ModuleKey::label).sorted();
  }

  private Validation<PackRefusal, Path> checked(String what, String name, String sha256) {
    return new PackFile(directory, name, sha256).checked(what, REMEDY);
  }
}

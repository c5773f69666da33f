package bifocal.cuda.pack;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.FileFailure;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * A pack in a directory, whose manifest was read and found to be for a device. Binaries are read
 * and checked when they are asked for.
 *
 * @param directory where it is
 * @param manifest what it says
 */
public record KernelPack(Path directory, PackManifest manifest) {
  private static final byte[] ELF = {0x7f, 'E', 'L', 'F'};
  private static final int ELF_HEADER = 64;

  /** The target whose kernels a device runs, for instance {@code sm_90}. */
  public static String target(ComputeCapability capability) {
    return "sm_" + capability.major() + capability.minor();
  }

  /**
   * Opens the pack of a device.
   *
   * @param packs directory that holds one pack a target, or is a pack itself
   */
  public static Validation<PackRefusal, KernelPack> open(Path packs, ComputeCapability device) {
    String target = target(device);
    Path directory =
        Files.isRegularFile(packs.resolve(PackManifest.FILE)) ? packs : packs.resolve(target);
    Path file = directory.resolve(PackManifest.FILE);
    if (!Files.isRegularFile(file)) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.NOT_FOUND,
              "kernel pack for " + target,
              "nothing at " + file,
              "a pack",
              "build one: " + command("PROFILE.json", packs, target)));
    }
    try {
      return ManifestReader.read(Files.readString(file, StandardCharsets.UTF_8))
          .flatMap(manifest -> forTarget(new KernelPack(directory, manifest), target));
    } catch (IOException e) {
      return Validation.invalid(unreadable(PackRefusal.Code.NOT_FOUND, file, e));
    }
  }

  private static Validation<PackRefusal, KernelPack> forTarget(KernelPack pack, String target) {
    String found = pack.manifest.target();
    return found.equals(target)
        ? Validation.valid(pack)
        : Validation.invalid(
            new PackRefusal(
                PackRefusal.Code.TARGET,
                "kernel pack " + pack.directory,
                "kernels for " + found,
                target,
                "build one for this device: " + command("PROFILE.json", pack.directory, target)));
  }

  /** The kernel that was compiled for this, or what is missing and how to build it. */
  public Validation<PackRefusal, KernelEntry> find(Specialisation wanted) {
    Option<KernelEntry> found = manifest.kernels().get(wanted);
    return found.isDefined()
        ? Validation.valid(found.get())
        : Validation.invalid(
            new PackRefusal(
                PackRefusal.Code.KERNEL_MISSING,
                "kernel pack " + directory,
                "no kernel for " + wanted,
                "one",
                "put "
                    + wanted.profileEntry()
                    + " among the specialisations of a profile and run "
                    + command("PROFILE.json", directory, manifest.target())
                    + " --keep-others"));
  }

  /** A kernel's binary, if it is the one that the manifest names. */
  public Validation<PackRefusal, byte[]> binary(KernelEntry kernel) {
    Path file = directory.resolve(kernel.file());
    if (!Files.isRegularFile(file)) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.FILE_MISSING,
              "kernel " + kernel.key(),
              "nothing at " + file,
              "its binary",
              "build the pack again"));
    }
    try {
      return checked(kernel, Files.readAllBytes(file));
    } catch (IOException e) {
      return Validation.invalid(unreadable(PackRefusal.Code.FILE_MISSING, file, e));
    }
  }

  private static Validation<PackRefusal, byte[]> checked(KernelEntry kernel, byte[] binary) {
    String hash = HexFormat.of().formatHex(sha256().digest(binary));
    if (hash.equals(kernel.sha256())) {
      return Validation.valid(binary);
    }
    boolean whole = binary.length >= ELF_HEADER;
    for (int i = 0; whole && i < ELF.length; i++) {
      whole = binary[i] == ELF[i];
    }
    return Validation.invalid(
        new PackRefusal(
            PackRefusal.Code.HASH,
            "kernel " + kernel.key(),
            binary.length + " bytes" + (whole ? "" : ", no binary") + " with sha256 " + hash,
            "sha256 " + kernel.sha256(),
            "the file is cut off or changed: build the pack again"));
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }

  private static PackRefusal unreadable(PackRefusal.Code code, Path file, IOException e) {
    return new PackRefusal(
        code, file.toString(), "unreadable: " + FileFailure.reason(e), "a readable file", "");
  }

  private static String command(String profile, Path packs, String target) {
    Path out = packs.endsWith(target) && packs.getParent() != null ? packs.getParent() : packs;
    return "python3 kernels/triton/build_packs.py "
        + out
        + " --profile "
        + profile
        + " --target "
        + target;
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.pack.PackFile;
import bifocal.tvm.CubinSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The code of kernels that modules ask for while they run, as files of a pack: a file lies where
 * the module says, below this folder, and has the hash that the module says.
 *
 * @param directory the folder
 */
record CubinFolder(Path directory) implements CubinSource {
  /** Name of the folder in a pack. */
  static final String NAME = "cubins";

  private static final String REMEDY =
      "put the files of FlashInfer's package of cubins there, of the version of the modules";

  @Override
  public byte[] cubin(String name, String sha256) {
    Path folder = directory.toAbsolutePath().normalize();
    Path file = folder.resolve(name).normalize();
    if (!file.startsWith(folder)) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "file of a kernel", name, "a file below " + folder);
    }
    return new PackFile(folder, folder.relativize(file).toString(), sha256)
        .checked("kernel " + name, REMEDY)
        .fold(
            refusal -> {
              throw refusal.asException();
            },
            CubinFolder::read);
  }

  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, "kernel " + file, "unreadable", "a readable file")
          .causedBy(e);
    }
  }
}

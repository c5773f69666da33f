package bifocal.cuda.pack;

import bifocal.core.error.FileFailure;
import io.vavr.control.Validation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * A file of a pack, as its manifest names it.
 *
 * @param directory of the pack
 * @param name of the file
 * @param sha256 of its content
 */
public record PackFile(Path directory, String name, String sha256) {

  /**
   * The file, if it is the one that the manifest names.
   *
   * @param what how a refusal calls it
   * @param remedy what to do when it is not there
   */
  public Validation<PackRefusal, Path> checked(String what, String remedy) {
    Path file = directory.resolve(name);
    if (!Files.isRegularFile(file)) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.FILE_MISSING, what, "nothing at " + file, "its file", remedy));
    }
    try {
      byte[] content = Files.readAllBytes(file);
      String hash = HexFormat.of().formatHex(digest().digest(content));
      return hash.equals(sha256)
          ? Validation.valid(file)
          : Validation.invalid(
              new PackRefusal(
                  PackRefusal.Code.HASH,
                  what,
                  content.length + " bytes with sha256 " + hash,
                  "sha256 " + sha256,
                  "the file is cut off or changed: build the pack again"));
    } catch (IOException e) {
      return Validation.invalid(
          new PackRefusal(
              PackRefusal.Code.FILE_MISSING,
              file.toString(),
              "unreadable: " + FileFailure.reason(e),
              "a readable file",
              ""));
    }
  }

  private static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }
}

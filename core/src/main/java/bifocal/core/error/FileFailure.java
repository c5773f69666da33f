package bifocal.core.error;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.io.JsonEOFException;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Why a file cannot be read or written, in words for the person who named it: what is wrong with
 * it, and no name of a class.
 */
public final class FileFailure {
  private static final int MOST_QUOTED = 20;
  private static final Pattern UNEXPECTED =
      Pattern.compile("Unexpected character \\('(.)' .*|Unrecognized token '([^']*)'.*");
  private static final Pattern TWICE = Pattern.compile("Duplicate (?:field|key) '([^']*)'.*");

  private FileFailure() {}

  /**
   * The refusal of a file to be read: {@code MALFORMED_INPUT} when it was, but holds other text
   * than UTF-8, else {@code INVALID_OPTION}.
   *
   * @param role what the file is to whoever named it, for instance an option
   */
  public static BifocalException reading(String role, Path file, IOException failure) {
    boolean read = failure instanceof CharacterCodingException;
    return BifocalException.of(
            read ? ErrorCode.MALFORMED_INPUT : ErrorCode.INVALID_OPTION,
            role + " '" + file + "'",
            Files.isDirectory(file) ? folder(file) : reason(failure),
            "a file that can be read")
        .causedBy(failure);
  }

  /**
   * The refusal of a file to be written.
   *
   * @param role what the file is to whoever named it, for instance an option
   */
  public static BifocalException writing(String role, Path file, IOException failure) {
    return BifocalException.of(
            ErrorCode.INVALID_OPTION,
            role + " '" + file + "' cannot be written",
            Files.isDirectory(file) ? folder(file) : reason(failure),
            "a file in a folder that can be written to")
        .causedBy(failure);
  }

  /** The refusal of a text that names no file on any system of files here. */
  public static BifocalException naming(String role, String given, InvalidPathException failure) {
    return BifocalException.of(
            ErrorCode.INVALID_OPTION, role + " '" + given + "'", "no name of a file", "one")
        .causedBy(failure);
  }

  private static String folder(Path file) {
    return file.toString().isEmpty() ? "no name" : "a folder";
  }

  /** What went wrong. */
  public static String reason(IOException failure) {
    return switch (failure) {
      case JsonProcessingException json -> inJson(json);
      case CharacterCodingException bytes -> "bytes that are no UTF-8";
      case NoSuchFileException missing -> "there is no such file or folder";
      case AccessDeniedException denied -> "access is denied";
      case FileSystemLoopException loop -> "a link that leads back to itself";
      case FileSystemException other -> told(other.getReason());
      default -> told(failure.getMessage());
    };
  }

  private static String told(@Nullable String text) {
    return Option.of(text).filter(said -> !said.isBlank()).getOrElse("the system does not say why");
  }

  private static String inJson(JsonProcessingException failure) {
    String text = told(failure.getOriginalMessage());
    Matcher unexpected = UNEXPECTED.matcher(text);
    Matcher twice = TWICE.matcher(text);
    String what;
    if (failure instanceof JsonEOFException || text.startsWith("Unexpected end-of-input")) {
      what = "it is cut: its JSON has no end";
    } else if (failure instanceof StreamConstraintsException) {
      what = "nested too deep, or a number, key or text too long";
    } else if (twice.matches()) {
      what = "the key " + quoted(twice.group(1)) + " twice";
    } else if (unexpected.matches()) {
      what =
          "not JSON: unexpected "
              + quoted(Option.of(unexpected.group(1)).getOrElse(() -> unexpected.group(2)));
    } else if (text.startsWith("Trailing token")) {
      what = "more behind the end of its JSON";
    } else if (text.startsWith("Invalid UTF-8")) {
      what = "not JSON: bytes that are no UTF-8";
    } else {
      what = "not JSON";
    }
    return what + place(failure.getLocation());
  }

  private static String quoted(String text) {
    return "'"
        + (text.length() <= MOST_QUOTED ? text : text.substring(0, MOST_QUOTED) + "...")
        + "'";
  }

  private static String place(@Nullable JsonLocation location) {
    return location == null
        ? ""
        : ", line " + location.getLineNr() + ", column " + location.getColumnNr();
  }
}

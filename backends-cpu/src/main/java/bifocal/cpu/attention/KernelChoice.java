package bifocal.cpu.attention;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cpu.ffi.NativeKernels;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.kernel.JavaKernels;
import bifocal.cpu.kernel.ScalarTileMath;
import bifocal.cpu.kernel.TileMath;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which kernels compute on this host, and why not faster ones.
 *
 * @param kernels the kernels
 * @param why one line for reports
 */
public record KernelChoice(CpuKernels kernels, String why) {
  /** System property that names the kernels: {@code native}, {@code vector} or {@code scalar}. */
  public static final String PROPERTY = "bifocal.cpu.kernels";

  private static final Logger LOG = LoggerFactory.getLogger(KernelChoice.class);
  private static final String VECTOR_MATH = "bifocal.cpu.vector.VectorTileMath";

  private static final class Shared {
    static final Try<KernelChoice> CHOICE =
        Try.of(() -> choose(Option.of(System.getProperty(PROPERTY))));
  }

  /**
   * The kernels of this JVM, chosen once.
   *
   * @throws BifocalException as {@link #choose}
   */
  public static KernelChoice ofThisJvm() {
    return Shared.CHOICE.get();
  }

  /**
   * The fastest kernels there are, or the named ones.
   *
   * @throws BifocalException {@code INVALID_OPTION} for an unknown name, {@code NATIVE_MISSING}
   *     when named kernels cannot run here
   */
  public static KernelChoice choose(Option<String> named) {
    return named.isDefined() ? namedChoice(named.get()) : fastest();
  }

  private static KernelChoice namedChoice(String name) {
    return switch (name.strip().toLowerCase(Locale.ROOT)) {
      case "native" -> new KernelChoice(nativeKernels(), "set by -D" + PROPERTY);
      case "vector" -> new KernelChoice(vector(), "set by -D" + PROPERTY);
      case "scalar" -> new KernelChoice(scalar(), "set by -D" + PROPERTY);
      default ->
          throw BifocalException.of(
              ErrorCode.INVALID_OPTION, PROPERTY, name, "native, vector or scalar");
    };
  }

  private static KernelChoice fastest() {
    try {
      return new KernelChoice(nativeKernels(), "C kernels");
    } catch (BifocalException missing) {
      return fastestJava(missing.getMessage());
    }
  }

  private static KernelChoice fastestJava(String noNative) {
    try {
      CpuKernels kernels = vector();
      LOG.warn("The CPU backends run on the Vector API, not on C kernels: {}", noNative);
      return new KernelChoice(kernels, noNative);
    } catch (BifocalException missing) {
      String why = noNative + "; " + missing.getMessage();
      LOG.warn("The CPU backends run on scalar Java, which is slow: {}", why);
      return new KernelChoice(scalar(), why);
    }
  }

  /**
   * Kernels in C.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says why there are none
   */
  public static NativeKernels nativeKernels() {
    return NativeKernels.load();
  }

  /** Kernels in plain Java. */
  public static CpuKernels scalar() {
    return new JavaKernels(new ScalarTileMath());
  }

  /**
   * Kernels over the Vector API.
   *
   * @throws BifocalException {@code NATIVE_MISSING} when the JVM runs without its module
   */
  public static CpuKernels vector() {
    // By name: the class cannot be linked without the incubator module.
    try {
      return new JavaKernels(
          (TileMath) Class.forName(VECTOR_MATH).getDeclaredConstructor().newInstance());
    } catch (ReflectiveOperationException | LinkageError e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING,
              "Vector API",
              "module jdk.incubator.vector is not loaded",
              "--add-modules jdk.incubator.vector")
          .causedBy(e);
    }
  }
}

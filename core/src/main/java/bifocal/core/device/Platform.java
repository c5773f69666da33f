package bifocal.core.device;

import java.util.Locale;

/** Kinds of hardware that attention runs on. */
public enum Platform {
  CPU,
  CUDA,
  ROCM,
  XPU;

  /** Name as users write it, for instance {@code cuda}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}

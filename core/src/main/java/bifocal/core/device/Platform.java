package bifocal.core.device;

import java.util.Locale;

/** Kinds of hardware that attention runs on. */
public enum Platform {
  CPU,
  CUDA,
  ROCM,
  XPU;

  private final String label = name().toLowerCase(Locale.ROOT);

  /** Name as users write it, for instance {@code cuda}. */
  public String label() {
    return label;
  }
}

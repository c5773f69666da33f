package bifocal.core.device;

import io.vavr.collection.Set;
import java.util.Locale;

/**
 * What is known of a device when a backend is selected: probed on this host, or simulated. {@code
 * packages} names optional kernel packages that are, or are assumed to be, installed.
 */
public sealed interface DeviceProfile {
  /** Kind of hardware. */
  Platform platform();

  /** Optional kernel packages present or assumed. */
  Set<String> packages();

  /** Whether nothing was probed and nothing needs to be installed. */
  boolean simulated();

  /** Name for reports, for instance {@code cuda 9.0}, {@code rocm gfx942} or {@code cpu amx}. */
  default String label() {
    return platform().label()
        + " "
        + switch (this) {
          case Cpu cpu -> cpu.isa().label();
          case Cuda cuda -> cuda.capability().toString();
          case Rocm rocm -> rocm.arch();
          case Xpu xpu -> xpu.name();
        };
  }

  /** Wide instruction sets of x86 processors, weakest first. */
  enum CpuIsa {
    GENERIC,
    AVX2,
    AVX512F,
    AVX512BF16,
    AMX;

    /** Name as users write it, for instance {@code avx512bf16}. */
    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** A host processor. */
  record Cpu(CpuIsa isa, Set<String> packages, boolean simulated) implements DeviceProfile {
    @Override
    public Platform platform() {
      return Platform.CPU;
    }
  }

  /** An NVIDIA device. */
  record Cuda(ComputeCapability capability, Set<String> packages, boolean simulated)
      implements DeviceProfile {
    @Override
    public Platform platform() {
      return Platform.CUDA;
    }
  }

  /** An AMD device, by architecture, for instance {@code gfx942}. */
  record Rocm(String arch, Set<String> packages, boolean simulated) implements DeviceProfile {
    @Override
    public Platform platform() {
      return Platform.ROCM;
    }
  }

  /** An Intel device. */
  record Xpu(String name, Set<String> packages, boolean simulated) implements DeviceProfile {
    @Override
    public Platform platform() {
      return Platform.XPU;
    }
  }
}

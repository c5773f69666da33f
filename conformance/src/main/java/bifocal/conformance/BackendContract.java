package bifocal.conformance;

import bifocal.conformance.memory.HostTestDevice;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.KvContract;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** What a contract test needs to know about the backend it tests. */
public interface BackendContract {
  /** The backend. It may be a composite. */
  AttentionBackend<?> backend();

  /** The device that capabilities are asked for; a host processor unless overridden. */
  default DeviceProfile profile() {
    return new DeviceProfile.Cpu(CpuIsa.AVX2, HashSet.empty(), false);
  }

  /** Opens the device that tests run on; the host unless overridden. */
  default TestDevice openDevice() {
    return HostTestDevice.plain();
  }

  /** Opens a device whose memory ends at pages without access. */
  default TestDevice openGuardedDevice() {
    return HostTestDevice.guarded();
  }

  /** The contract of a layer's cache; by default what the backend as writer and reader resolves. */
  default KvCacheSpec cacheSpec(Dense layer, Option<Integer> blockSize, KvScales scales) {
    AttentionRequest request = AttentionRequest.of(layer, profile());
    return KvContract.resolve(
            KvContract.Party.writer(backend(), request),
            Vector.of(KvContract.Party.reader(backend(), request)),
            layer,
            scales,
            blockSize)
        .fold(
            reasons -> {
              throw new AssertionError("no cache for " + layer + ": " + reasons);
            },
            spec -> spec);
  }
}

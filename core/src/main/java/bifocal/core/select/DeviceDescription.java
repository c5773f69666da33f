package bifocal.core.select;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile.CpuIsa;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/**
 * A device that is not here, as a user describes it.
 *
 * @param capability compute capability of an NVIDIA device
 * @param arch architecture of an AMD device
 * @param isa instruction set of a processor
 * @param packages kernel packages to assume; {@code no-NAME} assumes one away
 */
public record DeviceDescription(
    Option<ComputeCapability> capability,
    Option<String> arch,
    Option<CpuIsa> isa,
    Set<String> packages) {}

/** Devices: what is probed or simulated, and the context kernels are launched in. */
@NullMarked
package bifocal.core.device;

import org.jspecify.annotations.NullMarked;

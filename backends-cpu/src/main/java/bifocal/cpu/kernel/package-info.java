/**
 * CPU kernels: one interface that Java and native kernels share, the parameter blocks they read,
 * and the Java kernels themselves.
 */
@NullMarked
package bifocal.cpu.kernel;

import org.jspecify.annotations.NullMarked;

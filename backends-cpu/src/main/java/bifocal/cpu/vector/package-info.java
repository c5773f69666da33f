/**
 * The kernels' inner loops on the Vector API. Nothing outside links these classes: they need the
 * incubator module, and the CPU backends must start without it.
 */
@NullMarked
package bifocal.cpu.vector;

import org.jspecify.annotations.NullMarked;

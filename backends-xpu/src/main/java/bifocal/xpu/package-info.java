/** The XPU platform. */
@NullMarked
package bifocal.xpu;

import org.jspecify.annotations.NullMarked;

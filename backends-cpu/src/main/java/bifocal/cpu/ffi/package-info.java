/** The binding of the C kernels. */
@NullMarked
package bifocal.cpu.ffi;

import org.jspecify.annotations.NullMarked;

/** Functions of the operating system. */
@Incubating
@NullMarked
package bifocal.core.ffi;

import bifocal.core.Incubating;
import org.jspecify.annotations.NullMarked;

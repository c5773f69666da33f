/** How the host processor is told apart, and how the platform chooses among its backends. */
@NullMarked
package bifocal.cpu.select;

import org.jspecify.annotations.NullMarked;

/** Native memory by address, for inner loops only. */
@NullMarked
package bifocal.cpu.raw;

import org.jspecify.annotations.NullMarked;

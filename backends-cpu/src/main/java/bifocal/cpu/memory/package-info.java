/** Native memory that belongs to a layer for its whole life. */
@NullMarked
package bifocal.cpu.memory;

import org.jspecify.annotations.NullMarked;

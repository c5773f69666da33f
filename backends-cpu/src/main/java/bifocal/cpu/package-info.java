/** The CPU platform. */
@NullMarked
package bifocal.cpu;

import org.jspecify.annotations.NullMarked;

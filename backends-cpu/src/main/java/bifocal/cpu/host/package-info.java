/** What the CPU platform finds on its host. */
@NullMarked
package bifocal.cpu.host;

import org.jspecify.annotations.NullMarked;

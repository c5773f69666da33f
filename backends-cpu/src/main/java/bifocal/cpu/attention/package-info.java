/** The CPU's attention backends: what they declare, how they plan a batch, and how they run it. */
@NullMarked
package bifocal.cpu.attention;

import org.jspecify.annotations.NullMarked;

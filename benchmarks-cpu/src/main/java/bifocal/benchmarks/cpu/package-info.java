/** Attention on the host processor, measured beside libraries that do the same. */
@NullMarked
package bifocal.benchmarks.cpu;

import org.jspecify.annotations.NullMarked;

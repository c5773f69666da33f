/** The libraries that are measured, and the one that measures the machine. */
@NullMarked
package bifocal.benchmarks.cpu.ffi;

import org.jspecify.annotations.NullMarked;

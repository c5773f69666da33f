/** The threads of the CPU kernels: one budget per JVM, shared by every engine in it. */
@NullMarked
package bifocal.cpu.thread;

import org.jspecify.annotations.NullMarked;

/** The cache layout that the CPU kernels read without transposing, and its element types. */
@NullMarked
package bifocal.cpu.cache;

import org.jspecify.annotations.NullMarked;

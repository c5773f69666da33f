/** Memory of CUDA devices, and host memory that they read; each block has one owner. */
@NullMarked
package bifocal.cuda.memory;

import org.jspecify.annotations.NullMarked;

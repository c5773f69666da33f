/**
 * What is declared of the CUDA backends, how versions of their kernels are resolved, and how the
 * platform chooses among them.
 */
@NullMarked
package bifocal.cuda.select;

import org.jspecify.annotations.NullMarked;

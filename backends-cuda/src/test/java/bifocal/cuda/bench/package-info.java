/** Tests of what the benchmark of GPUs counts. */
@NullMarked
package bifocal.cuda.bench;

import org.jspecify.annotations.NullMarked;

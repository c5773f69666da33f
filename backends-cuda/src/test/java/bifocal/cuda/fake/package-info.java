/** A CUDA driver without a GPU, for tests. */
@NullMarked
package bifocal.cuda.fake;

import org.jspecify.annotations.NullMarked;

/** Tests of the CUDA platform. */
@NullMarked
package bifocal.cuda;

import org.jspecify.annotations.NullMarked;

/** What the CUDA platform finds on its host. */
@NullMarked
package bifocal.cuda.host;

import org.jspecify.annotations.NullMarked;

@NullMarked
package bifocal.cuda.flashinfer;

import org.jspecify.annotations.NullMarked;

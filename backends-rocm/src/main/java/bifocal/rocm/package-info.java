/** The ROCm platform. */
@NullMarked
package bifocal.rocm;

import org.jspecify.annotations.NullMarked;

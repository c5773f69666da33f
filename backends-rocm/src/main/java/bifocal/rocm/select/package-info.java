/** What is declared of the ROCm backends, and how the platform chooses among them. */
@NullMarked
package bifocal.rocm.select;

import org.jspecify.annotations.NullMarked;

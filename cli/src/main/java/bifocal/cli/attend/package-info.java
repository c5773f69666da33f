/** {@code bifocal attend}: attention over a file's own tensors. */
@NullMarked
package bifocal.cli.attend;

import org.jspecify.annotations.NullMarked;

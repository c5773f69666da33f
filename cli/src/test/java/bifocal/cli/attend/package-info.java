/** Tests of {@code bifocal attend}. */
@NullMarked
package bifocal.cli.attend;

import org.jspecify.annotations.NullMarked;

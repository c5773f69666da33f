/** {@code bifocal bench}: figures, side by side with peers and peaks. */
@NullMarked
package bifocal.cli.bench;

import org.jspecify.annotations.NullMarked;

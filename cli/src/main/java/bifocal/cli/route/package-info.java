/** {@code bifocal route}: where a described batch goes, and why. */
@NullMarked
package bifocal.cli.route;

import org.jspecify.annotations.NullMarked;

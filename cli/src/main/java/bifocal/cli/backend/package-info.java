/** The backends that commands can name: those bound by the platforms present, and pairs of them. */
@NullMarked
package bifocal.cli.backend;

import org.jspecify.annotations.NullMarked;

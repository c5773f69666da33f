/** The bifocal command. */
@NullMarked
package bifocal.cli;

import org.jspecify.annotations.NullMarked;

/** Formats the Java sources of this repository, or says which of them are not formatted. */
@NullMarked
package bifocal.format;

import org.jspecify.annotations.NullMarked;

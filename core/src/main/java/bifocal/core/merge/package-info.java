/** Joining attention that was computed over parts of the keys. */
@NullMarked
package bifocal.core.merge;

import org.jspecify.annotations.NullMarked;

/** The reference attention: plain Java, in double. */
@NullMarked
package bifocal.reference;

import org.jspecify.annotations.NullMarked;

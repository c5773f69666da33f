/** Tests of shadow mode. */
@NullMarked
package bifocal.reference.shadow;

import org.jspecify.annotations.NullMarked;

/** Shadow mode: a second backend runs every batch of the first one, and is compared with it. */
@NullMarked
package bifocal.reference.shadow;

import org.jspecify.annotations.NullMarked;

/** Tests of captured steps. */
@NullMarked
package bifocal.core.capsule;

import org.jspecify.annotations.NullMarked;

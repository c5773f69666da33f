/** Which child runs which request, and why. */
@NullMarked
package bifocal.core.route;

import org.jspecify.annotations.NullMarked;

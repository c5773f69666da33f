/** Observation of selections, routes and child runs. */
@NullMarked
package bifocal.core.observe;

import org.jspecify.annotations.NullMarked;

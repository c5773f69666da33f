/** Routing policies and mask lowering. */
@NullMarked
package bifocal.routing;

import org.jspecify.annotations.NullMarked;

/** What can be said of the host underneath, by whoever knows a part of it. */
@Incubating
@NullMarked
package bifocal.core.host;

import bifocal.core.Incubating;
import org.jspecify.annotations.NullMarked;

/** What can be said of the host underneath, by whoever knows a part of it. */
@NullMarked
package bifocal.core.host;

import org.jspecify.annotations.NullMarked;

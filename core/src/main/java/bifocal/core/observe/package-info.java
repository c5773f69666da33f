/** What happens to selections, routes and runs, as Flight Recorder events. */
@NullMarked
package bifocal.core.observe;

import org.jspecify.annotations.NullMarked;

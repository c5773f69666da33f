/** What a platform measures of itself, found as a service by the command that prints it. */
@Incubating
@NullMarked
package bifocal.core.bench;

import bifocal.core.Incubating;
import org.jspecify.annotations.NullMarked;

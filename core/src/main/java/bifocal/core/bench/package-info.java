/** What a platform measures of itself, found as a service by the command that prints it. */
@NullMarked
package bifocal.core.bench;

import org.jspecify.annotations.NullMarked;

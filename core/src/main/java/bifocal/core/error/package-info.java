/** The one family of failures: a stable code, what was seen, what was wanted, what to do. */
@NullMarked
package bifocal.core.error;

import org.jspecify.annotations.NullMarked;

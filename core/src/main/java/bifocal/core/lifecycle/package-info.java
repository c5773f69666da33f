/** Who may close what, and when. */
@NullMarked
package bifocal.core.lifecycle;

import org.jspecify.annotations.NullMarked;

/**
 * Chooses a backend for a layer: declarations of backends, the policies of platforms, the
 * configuration of users, and the report that says what was chosen and why the others were not.
 */
@NullMarked
package bifocal.core.select;

import org.jspecify.annotations.NullMarked;

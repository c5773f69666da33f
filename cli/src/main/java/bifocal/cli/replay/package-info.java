/**
 * {@code bifocal replay}: a real serving trace through a backend, every step routed and executed.
 */
@NullMarked
package bifocal.cli.replay;

import org.jspecify.annotations.NullMarked;

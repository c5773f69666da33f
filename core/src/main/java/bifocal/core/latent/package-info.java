/**
 * How steps of latent attention are cut and shared out, before any kernel runs: arithmetic over
 * lengths alone.
 */
@Incubating
@NullMarked
package bifocal.core.latent;

import bifocal.core.Incubating;
import org.jspecify.annotations.NullMarked;

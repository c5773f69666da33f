/**
 * Two backends as one: composition, its rules, and the builder and implementation that dispatch.
 */
@NullMarked
package bifocal.composite;

import org.jspecify.annotations.NullMarked;

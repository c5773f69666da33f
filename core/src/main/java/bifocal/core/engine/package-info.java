/**
 * What a host engine runs steps with: planned groups, their runtimes, the owning thread, graphs.
 */
@NullMarked
package bifocal.core.engine;

import org.jspecify.annotations.NullMarked;

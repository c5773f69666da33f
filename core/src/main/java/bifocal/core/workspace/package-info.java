/** Workspace planning: named regions with entry and exit states, and memory leased per step. */
@NullMarked
package bifocal.core.workspace;

import org.jspecify.annotations.NullMarked;

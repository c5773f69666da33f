/** Captured graphs: which batches may be replayed, and under which key. */
@NullMarked
package bifocal.core.graph;

import org.jspecify.annotations.NullMarked;

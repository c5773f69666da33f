/** One step's batch: query starts, sequence lengths, image ranges, block table and slots. */
@NullMarked
package bifocal.core.batch;

import org.jspecify.annotations.NullMarked;

/** The KV cache contract: data types, layouts, block sizes, scales, views and the block pool. */
@NullMarked
package bifocal.core.cache;

import org.jspecify.annotations.NullMarked;

/**
 * {@code FLASH_ATTN}, version 4, on Hopper: forwards that were compiled ahead of time, called
 * through TVM-FFI. They plan nothing on the host.
 */
@NullMarked
package bifocal.cuda.flashattention;

import org.jspecify.annotations.NullMarked;

/**
 * {@code TRITON_ATTN}: this project's own kernels for GPUs, from a kernel pack. One child reads any
 * mask, the other the windows of runs.
 */
@NullMarked
package bifocal.cuda.triton;

import org.jspecify.annotations.NullMarked;

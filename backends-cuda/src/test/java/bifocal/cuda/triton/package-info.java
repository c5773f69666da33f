/** Tests of {@code TRITON_ATTN}; those tagged "gpu" need a device and a kernel pack. */
@NullMarked
package bifocal.cuda.triton;

import org.jspecify.annotations.NullMarked;

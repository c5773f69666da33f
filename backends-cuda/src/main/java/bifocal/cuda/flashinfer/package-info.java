/**
 * {@code FLASHINFER}: FlashInfer's kernels, compiled ahead of time into libraries that export
 * TVM-FFI functions, planned once a step and run once a layer.
 */
@NullMarked
package bifocal.cuda.flashinfer;

import org.jspecify.annotations.NullMarked;

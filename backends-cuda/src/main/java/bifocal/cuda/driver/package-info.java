/**
 * The CUDA driver: its one binding class, and devices, contexts, streams, events, kernels and
 * graphs on top of it.
 */
@NullMarked
package bifocal.cuda.driver;

import org.jspecify.annotations.NullMarked;

/** Tensors as a shape over memory somebody else owns, on any device. */
@NullMarked
package bifocal.core.tensor;

import org.jspecify.annotations.NullMarked;

/** Hand-written fakes: backends that record what they are asked, kernels, and captured graphs. */
@NullMarked
package bifocal.conformance.fake;

import org.jspecify.annotations.NullMarked;

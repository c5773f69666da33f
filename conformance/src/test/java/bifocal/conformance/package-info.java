/** The kit tested: the reference passes it, and each wrong backend fails it. */
@NullMarked
package bifocal.conformance;

import org.jspecify.annotations.NullMarked;

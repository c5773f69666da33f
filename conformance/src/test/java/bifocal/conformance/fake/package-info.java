/** Tests of the fakes themselves. */
@NullMarked
package bifocal.conformance.fake;

import org.jspecify.annotations.NullMarked;

/** Contract tests and fakes that a backend runs in its own build. */
@NullMarked
package bifocal.conformance;

import org.jspecify.annotations.NullMarked;

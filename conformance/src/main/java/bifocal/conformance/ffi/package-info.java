/** The binding to the operating system's page protection. */
@NullMarked
package bifocal.conformance.ffi;

import org.jspecify.annotations.NullMarked;

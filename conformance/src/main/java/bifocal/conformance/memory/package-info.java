/** Memory that contract tests run in: it notices writes outside its bounds, and reads as well. */
@NullMarked
package bifocal.conformance.memory;

import org.jspecify.annotations.NullMarked;

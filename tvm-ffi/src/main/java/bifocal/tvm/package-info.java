/**
 * TVM-FFI libraries, called from Java: a runtime, its modules, their functions, and what goes in
 * and comes out of a call. Nothing here knows attention, and no Python is in the process.
 */
@NullMarked
package bifocal.tvm;

import org.jspecify.annotations.NullMarked;

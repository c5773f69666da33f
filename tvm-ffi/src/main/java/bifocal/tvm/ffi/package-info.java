/** The bindings of {@code libtvm_ffi} and of what the C library loads libraries with. */
@NullMarked
package bifocal.tvm.ffi;

import org.jspecify.annotations.NullMarked;

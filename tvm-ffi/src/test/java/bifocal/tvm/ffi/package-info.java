@NullMarked
package bifocal.tvm.ffi;

import org.jspecify.annotations.NullMarked;

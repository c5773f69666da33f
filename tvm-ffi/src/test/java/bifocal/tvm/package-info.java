@NullMarked
package bifocal.tvm;

import org.jspecify.annotations.NullMarked;

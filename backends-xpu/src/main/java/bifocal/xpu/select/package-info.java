/** How XPU chooses among backends that other platforms declare. */
@NullMarked
package bifocal.xpu.select;

import org.jspecify.annotations.NullMarked;

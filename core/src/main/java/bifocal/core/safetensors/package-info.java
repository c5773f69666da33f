/** Reads and writes safetensors files, strictly. */
@NullMarked
package bifocal.core.safetensors;

import org.jspecify.annotations.NullMarked;

/** Reads and writes safetensors files, strictly. */
@NullMarked
package bifocal.cli.safetensors;

import org.jspecify.annotations.NullMarked;

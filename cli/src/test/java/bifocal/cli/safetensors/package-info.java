/** Tests of reading and writing safetensors files. */
@NullMarked
package bifocal.cli.safetensors;

import org.jspecify.annotations.NullMarked;

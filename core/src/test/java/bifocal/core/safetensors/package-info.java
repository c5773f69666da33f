/** Tests of reading and writing safetensors files. */
@NullMarked
package bifocal.core.safetensors;

import org.jspecify.annotations.NullMarked;

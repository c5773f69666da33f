/** Tests of kernel packs, over manifests made for them. */
@NullMarked
package bifocal.cuda.pack;

import org.jspecify.annotations.NullMarked;

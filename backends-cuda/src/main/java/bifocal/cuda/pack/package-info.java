/**
 * Kernel packs: what their manifest says, the checks before one is used, and how a kernel of a pack
 * is found by what it was compiled for.
 */
@NullMarked
package bifocal.cuda.pack;

import org.jspecify.annotations.NullMarked;

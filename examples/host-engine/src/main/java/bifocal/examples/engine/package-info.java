/** A small inference host on Bifocal. */
@NullMarked
package bifocal.examples.engine;

import org.jspecify.annotations.NullMarked;

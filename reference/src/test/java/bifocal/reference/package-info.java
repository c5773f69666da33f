/** Tests of the reference attention against numbers worked out by hand. */
@NullMarked
package bifocal.reference;

import org.jspecify.annotations.NullMarked;

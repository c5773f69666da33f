/** What holds of composites, whoever their children are. */
@NullMarked
package bifocal.composite;

import org.jspecify.annotations.NullMarked;

/** One step of one layer as a file that can be routed and run again, anywhere. */
@NullMarked
package bifocal.core.capsule;

import org.jspecify.annotations.NullMarked;

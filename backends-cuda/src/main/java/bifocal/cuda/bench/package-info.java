/** What {@code bifocal bench --suite gpu} measures. */
@NullMarked
package bifocal.cuda.bench;

import org.jspecify.annotations.NullMarked;

/** What a layer needs: its attention specification, its mask, and the group it belongs to. */
@NullMarked
package bifocal.core.layer;

import org.jspecify.annotations.NullMarked;

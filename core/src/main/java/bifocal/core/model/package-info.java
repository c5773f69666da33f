/** Attention shapes of public models, and the layer groups they make. */
@NullMarked
package bifocal.core.model;

import org.jspecify.annotations.NullMarked;

/** A host that brings its own KV memory and block manager. */
@NullMarked
package bifocal.examples.cache;

import org.jspecify.annotations.NullMarked;

/** What holds of the bindings. */
@NullMarked
package bifocal.composite.guice;

import org.jspecify.annotations.NullMarked;

/** Two backends as one: factory, metadata, impl and the Guice binder. */
@NullMarked
package bifocal.composite;

import org.jspecify.annotations.NullMarked;

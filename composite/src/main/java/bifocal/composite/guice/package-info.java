/**
 * The same by Guice: how platforms and hosts bind backends, composites and policies, and the one
 * place that makes an injector.
 */
@NullMarked
package bifocal.composite.guice;

import org.jspecify.annotations.NullMarked;

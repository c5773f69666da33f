/** Vocabulary, SPI, registry, validation, selection, step metadata, KV cache and native memory. */
@NullMarked
package bifocal.core;

import org.jspecify.annotations.NullMarked;

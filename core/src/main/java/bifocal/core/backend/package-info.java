/** The attention backend SPI: capabilities, metadata builders and implementations. */
@NullMarked
package bifocal.core.backend;

import org.jspecify.annotations.NullMarked;

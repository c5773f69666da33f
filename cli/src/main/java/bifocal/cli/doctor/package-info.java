/** The {@code doctor} command: what is on this host, and what to do about what is not. */
@NullMarked
package bifocal.cli.doctor;

import org.jspecify.annotations.NullMarked;

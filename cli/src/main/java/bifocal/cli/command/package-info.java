/** What all commands share: streams, exit statuses, refusals, formats and JSON. */
@NullMarked
package bifocal.cli.command;

import org.jspecify.annotations.NullMarked;

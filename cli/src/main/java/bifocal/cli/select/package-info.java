/** The commands that choose and describe backends: select, explain, tables and compose. */
@NullMarked
package bifocal.cli.select;

import org.jspecify.annotations.NullMarked;

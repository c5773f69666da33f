package bifocal.cli.select;

import io.vavr.collection.Seq;

/**
 * A table of text.
 *
 * @param columns names of the columns
 * @param rows cells, in the order of the columns
 */
record Table(Seq<String> columns, Seq<Seq<String>> rows) {}

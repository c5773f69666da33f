package bifocal.composite;

/** Where a child finds its rows of q and writes its rows of the output. */
public sealed interface QueryRows permits QueryRows.InPlace, PackedRows {
  /** In the host's tensors. */
  QueryRows IN_PLACE = new InPlace();

  /** In the host's tensors: nothing is copied. */
  record InPlace() implements QueryRows {}
}

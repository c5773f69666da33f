package bifocal.core.select;

/** Types of the side cache in which an indexer of sparse attention keeps its keys. */
public enum IndexerKvDtype {
  AUTO,
  BF16,
  FP8,
  MXFP4,
  NVFP4
}

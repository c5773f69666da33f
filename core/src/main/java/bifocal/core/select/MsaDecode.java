package bifocal.core.select;

/** Who computes the sparse decode of MiniMax M3's layers. */
public enum MsaDecode {
  TRITON,
  CUTLASS
}

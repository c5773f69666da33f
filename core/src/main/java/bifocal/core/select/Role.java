package bifocal.core.select;

/** Whose layers a backend is chosen for. */
public enum Role {
  /** The model itself. */
  TARGET,
  /** The smaller model that drafts tokens; it is replicated where the target is sharded. */
  DRAFT
}

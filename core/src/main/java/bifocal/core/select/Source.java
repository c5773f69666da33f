package bifocal.core.select;

import java.util.Locale;

/** What decided a selection. */
public enum Source {
  /** The user named the backend. */
  EXPLICIT,
  /** The first valid backend of the platform's list. */
  PRIORITY,
  /** A policy of the model. */
  MODEL;

  /** As reports write it. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}

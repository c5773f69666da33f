package bifocal.cuda.pack;

import io.vavr.control.Option;

/** One axis of a grid. */
public sealed interface GridWord {
  /** A number that only the launch knows. */
  enum Count implements GridWord {
    TILES("tiles"),
    KV_HEADS("kv_heads"),
    QUERY_HEADS("query_heads"),
    SPLITS("splits"),
    TOKENS("tokens"),
    TILE_TOKENS("tile_tokens"),
    PROGRAMS("programs"),
    ONE("1");

    private final String label;

    Count(String label) {
      this.label = label;
    }
  }

  /** KV heads divided by a number, rounded up. */
  record KvHeadsBy(int heads) implements GridWord {}

  /** The word of a manifest; absent when it is none. */
  static Option<GridWord> of(String text) {
    for (Count count : Count.values()) {
      if (count.label.equals(text)) {
        return Option.some(count);
      }
    }
    String prefix = Count.KV_HEADS.label + "/";
    String digits = text.startsWith(prefix) ? text.substring(prefix.length()) : "";
    return Option.when(
        digits.matches("[1-9][0-9]{0,5}"), () -> new KvHeadsBy(Integer.parseInt(digits)));
  }
}

package bifocal.core.cache;

/** The layouts that every platform shares. Platforms add their own. */
public final class KvLayouts {
  /** Tokens, then heads, then elements. */
  public static final PlainKvLayout NHD = new PlainKvLayout("NHD", PlainKvLayout.Order.TOKEN_FIRST);

  /** Heads, then tokens, then elements. */
  public static final PlainKvLayout HND = new PlainKvLayout("HND", PlainKvLayout.Order.HEAD_FIRST);

  private KvLayouts() {}
}

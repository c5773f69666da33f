package bifocal.core.batch;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * Where a batch whose decodes stand in front passes into prefills. Everything behind the first
 * prefill counts as prefill, whatever its length.
 *
 * @param decodes live requests that are decodes
 * @param prefills live requests that are prefills
 * @param decodeTokens query tokens of the decodes
 * @param prefillTokens query tokens of the prefills
 */
public record DecodePrefillSplit(int decodes, int prefills, int decodeTokens, int prefillTokens) {

  /**
   * What counts as a decode.
   *
   * @param threshold queries up to which a request is a decode
   * @param uniform whether all decodes must have equally many queries
   * @param shortExtends whether requests that still work on their prompt may be decodes; otherwise
   *     the batch must say which these are
   */
  public record Rule(int threshold, boolean uniform, boolean shortExtends) {
    public Rule {
      if (threshold < 1) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER, "decode threshold", threshold, "at least 1");
      }
    }

    /** Up to so many queries, of any kind. */
    public static Rule upTo(int threshold) {
      return new Rule(threshold, false, true);
    }

    /** Up to so many queries, all decodes alike. */
    public Rule alike() {
      return new Rule(threshold, true, shortExtends);
    }

    /** Only requests that finished their prompt. */
    public Rule withoutShortExtends() {
      return new Rule(threshold, uniform, false);
    }
  }

  /**
   * Splits the live requests of a batch.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} when the rule leaves out short extends and
   *     the batch does not say which requests are prefilling
   */
  public static DecodePrefillSplit of(CommonAttentionMetadata batch, Rule rule) {
    int tokens = 0;
    for (int r = 0; r < batch.live(); r++) {
      tokens += batch.queryLen(r);
    }
    return of(batch, rule, tokens);
  }

  /**
   * Splits a batch whose token count was padded; the padding counts with the last part.
   *
   * @param tokens query tokens, padding included
   */
  public static DecodePrefillSplit of(CommonAttentionMetadata batch, Rule rule, int tokens) {
    if (!rule.shortExtends() && !batch.knowsPrefilling()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "split of a batch",
          "no prefilling flags",
          "flags that say which requests work on their prompt");
    }
    if (allDecodes(batch, rule)) {
      return new DecodePrefillSplit(batch.live(), 0, tokens, 0);
    }
    int decodeTokens = 0;
    for (int r = 0; r < batch.live(); r++) {
      if (isPrefill(batch, rule, r)) {
        return new DecodePrefillSplit(r, batch.live() - r, decodeTokens, tokens - decodeTokens);
      }
      decodeTokens += batch.queryLen(r);
    }
    return new DecodePrefillSplit(batch.live(), 0, tokens, 0);
  }

  /**
   * Whether lengths alone say that no request is a prefill: all are short and need not be alike, or
   * are alike but for requests without a query.
   */
  private static boolean allDecodes(CommonAttentionMetadata batch, Rule rule) {
    if (!rule.shortExtends() || batch.maxQueryLen() > rule.threshold()) {
      return false;
    }
    return !rule.uniform() || rule.threshold() == 1 || alikeOrEmpty(batch);
  }

  private static boolean isPrefill(CommonAttentionMetadata batch, Rule rule, int r) {
    int length = batch.queryLen(r);
    return length > rule.threshold()
        || (rule.uniform() && length != batch.queryLen(0))
        || (!rule.shortExtends() && batch.prefilling(r));
  }

  private static boolean alikeOrEmpty(CommonAttentionMetadata batch) {
    boolean alike = true;
    for (int r = 0; r < batch.live(); r++) {
      alike &= batch.queryLen(r) == 0 || batch.queryLen(r) == batch.queryLen(0);
    }
    return alike;
  }
}

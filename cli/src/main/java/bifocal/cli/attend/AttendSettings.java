package bifocal.cli.attend;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvScales;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import io.vavr.collection.Array;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.math.BigDecimal;
import java.util.Locale;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * What a case's texts say, read strictly: an unknown key and a value that is not what its key wants
 * end the command.
 */
record AttendSettings(Map<String, String> texts) {
  private static final Seq<String> KEYS =
      Vector.of(
          "scale",
          "causal",
          "sliding_window",
          "mask",
          "softcap",
          "kv_cache_dtype",
          "k_scale",
          "v_scale",
          "block_size",
          StepCapsule.KEY);
  private static final Pattern NOT_FINITE =
      Pattern.compile("[+-]?(nan|inf(inity)?)", Pattern.CASE_INSENSITIVE);

  AttendSettings {
    for (String key : texts.keySet()) {
      if (!KEYS.contains(key)) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "__metadata__: unknown key '" + key + "'; " + NearestName.adviceElseAll(key, KEYS));
      }
    }
  }

  /** Factor of {@code q·k}. */
  Option<Double> scale() {
    return number("scale");
  }

  Option<Double> softcap() {
    return number("softcap");
  }

  Option<Integer> blockSize() {
    return count("block_size");
  }

  KvCacheDtype kvCacheDtype() {
    return named("kv_cache_dtype", KvCacheDtype.AUTO, KvCacheDtype.values(), KvCacheDtype::label);
  }

  /** Scales of a quantised cache. */
  KvScales scales() {
    Option<Double> k = number("k_scale");
    Option<Double> v = number("v_scale");
    return k.isEmpty() && v.isEmpty()
        ? KvScales.ONE
        : new KvScales.PerTensor(k.getOrElse(1.0).floatValue(), v.getOrElse(1.0).floatValue());
  }

  /** The mask; images join none unless said. */
  AttentionMask mask() {
    return new AttentionMask(
        flag("causal"),
        count("sliding_window"),
        named("mask", ImageMask.NONE, ImageMask.values(), ImageMask::label),
        Option.none());
  }

  private boolean flag(String key) {
    return texts
        .get(key)
        .map(
            text ->
                switch (text) {
                  case "true" -> true;
                  case "false" -> false;
                  default -> throw wrong(key, text, "true or false");
                })
        .getOrElse(false);
  }

  private Option<Integer> count(String key) {
    return texts.get(key).map(text -> count(key, text));
  }

  private static int count(String key, String text) {
    if (!text.matches("-?[0-9]{1,18}")) {
      throw wrong(key, text, "a whole number from 1 on");
    }
    long value = Long.parseLong(text);
    if (value < 1) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, where(key), text, "at least 1");
    }
    if (value > Integer.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, where(key), text, "at most " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  private Option<Double> number(String key) {
    return texts.get(key).map(text -> number(key, text));
  }

  private static double number(String key, String text) {
    double value = NOT_FINITE.matcher(text).matches() ? Double.NaN : parsed(key, text);
    if (!Double.isFinite(value)) {
      throw BifocalException.of(ErrorCode.NOT_FINITE, where(key), text, "a finite number");
    }
    return value;
  }

  private static double parsed(String key, String text) {
    try {
      return new BigDecimal(text).doubleValue();
    } catch (NumberFormatException e) {
      throw wrong(key, text, "a number").causedBy(e);
    }
  }

  private <E> E named(String key, E unlessGiven, E[] values, Function<E, String> label) {
    return texts
        .get(key)
        .map(
            text ->
                Array.of(values)
                    .find(value -> label.apply(value).equals(text.toLowerCase(Locale.ROOT)))
                    .getOrElseThrow(() -> unknown(key, text, Array.of(values).map(label))))
        .getOrElse(unlessGiven);
  }

  private static BifocalException unknown(String key, String text, Seq<String> known) {
    return BifocalException.of(
        ErrorCode.INVALID_OPTION,
        where(key) + ": unknown '" + text + "'; " + NearestName.adviceElseAll(text, known));
  }

  private static BifocalException wrong(String key, String text, String wanted) {
    return BifocalException.of(ErrorCode.MALFORMED_INPUT, where(key), "'" + text + "'", wanted);
  }

  private static String where(String key) {
    return "__metadata__." + key;
  }
}

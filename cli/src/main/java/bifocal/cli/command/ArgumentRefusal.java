package bifocal.cli.command;

import bifocal.core.error.NearestName;
import io.vavr.collection.Array;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Locale;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.OverwrittenOptionException;
import picocli.CommandLine.ParameterException;

/**
 * What is wrong with an argument in the words of whoever wrote it: the option, the value seen, the
 * values wanted; no type of Java.
 */
final class ArgumentRefusal {
  private static final String NO_VALUE = "Missing required parameter for";

  private ArgumentRefusal() {}

  static String message(ParameterException refusal) {
    String told = String.valueOf(refusal.getMessage());
    return switch (refusal) {
      case MissingParameterException missing -> missing(Vector.ofAll(missing.getMissing()), told);
      case OverwrittenOptionException twice ->
          name(twice.getOverwritten()) + ": given twice, wanted once";
      default ->
          Option.of(refusal.getArgSpec())
              .flatMap(argument -> unfit(argument, refusal.getValue()))
              .getOrElse(told);
    };
  }

  private static String missing(Seq<ArgSpec> missing, String told) {
    Seq<String> names =
        missing.map(argument -> argument.isOption() ? shown(argument) : argument.paramLabel());
    if (told.startsWith(NO_VALUE)) {
      return missing.map(ArgumentRefusal::name).mkString(", ")
          + ": no value, wanted "
          + names.mkString(", ");
    }
    return names.mkString(" and ") + (names.size() == 1 ? " is" : " are") + " missing";
  }

  private static String shown(ArgSpec argument) {
    return name(argument) + " " + argument.paramLabel();
  }

  private static Option<String> unfit(ArgSpec argument, String value) {
    return Option.of(value)
        .flatMap(
            given ->
                wanted(argument, given)
                    .map(wanted -> name(argument) + ": '" + given + "', wanted " + wanted));
  }

  private static Option<String> wanted(ArgSpec argument, String given) {
    Class<?> type =
        argument.typeInfo().isMultiValue() || argument.typeInfo().isOptional()
            ? argument.auxiliaryTypes()[0]
            : argument.type();
    if (type.isEnum()) {
      Seq<String> names =
          Array.of(type.getEnumConstants())
              .map(constant -> ((Enum<?>) constant).name().toLowerCase(Locale.ROOT));
      String advice = NearestName.advice(given, names);
      return Option.some(names.mkString(", ") + (advice.isEmpty() ? "" : "; " + advice));
    }
    if (type == int.class || type == Integer.class) {
      return Option.some(range(Integer.MIN_VALUE, Integer.MAX_VALUE));
    }
    if (type == long.class || type == Long.class) {
      return Option.some(range(Long.MIN_VALUE, Long.MAX_VALUE));
    }
    if (type == boolean.class || type == Boolean.class) {
      return Option.some("true or false");
    }
    return Option.when(type == double.class || type == Double.class, "a number");
  }

  private static String range(long least, long most) {
    return "a whole number from " + least + " to " + most;
  }

  private static String name(ArgSpec argument) {
    return argument instanceof OptionSpec option ? option.longestName() : argument.paramLabel();
  }
}

package bifocal.cli.command;

import java.util.List;

/** How a command writes its result. */
public enum OutputFormat {
  /** For a person. */
  TEXT,
  /** One JSON object. */
  JSON;

  private static final String OPTION = "--format";

  /**
   * The format that these arguments ask for, even where the rest of them is not well formed, so
   * that a refusal of the arguments themselves has the right format.
   */
  static OutputFormat asked(List<String> arguments) {
    OutputFormat asked = TEXT;
    for (int i = 0; i < arguments.size(); i++) {
      String argument = arguments.get(i);
      if (argument.startsWith(OPTION + "=")) {
        asked = named(argument.substring(OPTION.length() + 1));
      } else if (argument.equals(OPTION) && i + 1 < arguments.size()) {
        asked = named(arguments.get(i + 1));
      }
    }
    return asked;
  }

  private static OutputFormat named(String name) {
    return name.equalsIgnoreCase(JSON.name()) ? JSON : TEXT;
  }
}

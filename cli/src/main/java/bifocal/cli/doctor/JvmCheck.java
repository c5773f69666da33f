package bifocal.cli.doctor;

import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.management.ManagementFactory;

/** The JVM and the flags it was started with. */
final class JvmCheck implements HostCheck {
  private static final int BUILT_FOR = 25;
  private static final String LAUNCHER = "run ./bifocal, which passes the flags, or add ";
  private static final String NATIVE = "--enable-native-access=ALL-UNNAMED";
  private static final String GUICE = "-Dguice_custom_class_loading=CHILD";

  @Override
  public Seq<Finding> findings() {
    return Vector.of(jdk(), nativeAccess(), guice());
  }

  private static Finding jdk() {
    String seen =
        Runtime.version()
            + ", "
            + System.getProperty("java.vendor", "unknown vendor")
            + ", "
            + System.getProperty("java.home", "unknown place");
    return Runtime.version().feature() == BUILT_FOR
        ? Finding.good("JDK", seen)
        : Finding.limited("JDK", seen, "install a JDK " + BUILT_FOR + ", or set JAVA_HOME to one");
  }

  private static Finding nativeAccess() {
    return JvmCheck.class.getModule().isNativeAccessEnabled()
        ? Finding.good("native access", "on")
        : Finding.limited("native access", "off: the JVM warns, or refuses", LAUNCHER + NATIVE);
  }

  private static Finding guice() {
    return "CHILD".equals(System.getProperty("guice_custom_class_loading"))
        ? Finding.good("JVM flags", flags())
        : Finding.limited("JVM flags", flags() + ": Guice touches Unsafe", LAUNCHER + GUICE);
  }

  private static String flags() {
    Seq<String> flags =
        Vector.ofAll(ManagementFactory.getRuntimeMXBean().getInputArguments())
            .map(flag -> flag.startsWith("-XX:AOTCache=") ? "-XX:AOTCache" : flag)
            .filter(flag -> !flag.startsWith("-Xlog:"));
    return flags.isEmpty() ? "none" : flags.mkString(" ");
  }
}

package bifocal.core.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** A backend ran or launched one layer's attention. */
@Name("bifocal.Forward")
@Label("Attention Forward")
@Description("A backend ran one layer's attention, or launched it where the device runs by itself")
@Category("Bifocal")
@StackTrace(false)
final class ForwardEvent extends Event {
  @Label("Backend")
  String backend = "";

  @Label("Kernels")
  String kernels = "";

  @Label("Layer Group")
  String group = "";

  @Label("Requests")
  int requests;

  @Label("Query Tokens")
  int queryTokens;

  @Label("Time")
  @Timespan(Timespan.NANOSECONDS)
  long time;
}

package bifocal.core.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** A policy chose where one step's batch of a layer group goes. */
@Name("bifocal.Route")
@Label("Attention Route")
@Description("A policy chose where one step's batch of a layer group goes")
@Category("Bifocal")
@StackTrace(false)
final class RouteEvent extends Event {
  @Label("Layer Group")
  String group = "";

  @Label("Route")
  String route = "";

  @Label("Live Requests")
  int requests;

  @Label("Query Tokens")
  int queryTokens;

  @Label("Requests to Child A")
  int toChildA;

  @Label("Requests to Child B")
  int toChildB;

  @Label("Share of Query Tokens on Child B")
  float childBShare;

  @Label("Routing Time")
  @Timespan(Timespan.NANOSECONDS)
  long routing;
}

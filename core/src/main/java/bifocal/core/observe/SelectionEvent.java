package bifocal.core.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A backend was selected for a layer. */
@Name("bifocal.Selection")
@Label("Attention Selection")
@Description("A backend was selected for a layer")
@Category("Bifocal")
@StackTrace(false)
final class SelectionEvent extends Event {
  @Label("Backend")
  String backend = "";

  @Label("Source")
  @Description("What decided: an explicit choice, a priority list or a model's policy")
  String source = "";

  @Label("Device")
  String device = "";

  @Label("Head Size")
  int headSize;

  @Label("Attention Type")
  String attentionType = "";

  @Label("Considered")
  @Description("Every candidate, each with what speaks against it")
  String considered = "";
}

package bifocal.conformance.fake;

import bifocal.core.backend.BackendName;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** The calls of one test's fakes, in their order. */
public final class CallLog {
  private Seq<Call> calls = Vector.empty();

  /** Appends a call. */
  public synchronized void add(Call call) {
    calls = calls.append(call);
  }

  /** All calls so far. */
  public synchronized Seq<Call> calls() {
    return calls;
  }

  /** The calls of one kind, whichever backend received them. */
  public <C extends Call> Seq<C> of(Class<C> kind) {
    return calls().filter(kind::isInstance).map(kind::cast);
  }

  /** The calls of one kind that one backend received. */
  public <C extends Call> Seq<C> of(Class<C> kind, BackendName backend) {
    return of(kind).filter(call -> call.backend().equals(backend));
  }

  /** Forgets all calls. */
  public synchronized void clear() {
    calls = Vector.empty();
  }
}

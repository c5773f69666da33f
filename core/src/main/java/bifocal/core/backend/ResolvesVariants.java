package bifocal.core.backend;

/** A backend that says which of its variants serves a request. */
public interface ResolvesVariants {
  /** The variant that serves a request, or would if its refusal did not stand. */
  ResolvedVariant variant(AttentionRequest request);
}

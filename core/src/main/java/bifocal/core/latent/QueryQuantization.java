package bifocal.core.latent;

/** Who quantises the absorbed query of a decode over a quantised latent cache. */
public enum QueryQuantization {
  /** The layer does, before it calls the backend. */
  BY_LAYER("the layer quantises queries, by one static scale"),
  /** The backend does, from the query in the model's type. */
  BY_BACKEND("it quantises queries itself"),
  /** Nobody does: the kernel takes the model's type and turns cached numbers back itself. */
  NEVER("queries stay in the model's type");

  private final String remark;

  QueryQuantization(String remark) {
    this.remark = remark;
  }

  /** What whoever calls the backend must know. */
  public String remark() {
    return remark;
  }
}

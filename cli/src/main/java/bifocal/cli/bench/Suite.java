package bifocal.cli.bench;

/** What can be measured. */
enum Suite {
  /** Attention on the host processor. */
  cpu,
  /** Attention on a GPU. */
  gpu,
  /** What Bifocal itself costs. */
  host
}

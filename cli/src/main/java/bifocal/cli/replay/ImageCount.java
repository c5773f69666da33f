package bifocal.cli.replay;

/** How the trace's {@code NumImages} is read. */
enum ImageCount {
  /** As the square of the number of images, which the token counts of the trace support. */
  isqrt {
    @Override
    int of(int published) {
      return (int) Math.sqrt((double) published);
    }
  },
  /** As the number of images. */
  raw {
    @Override
    int of(int published) {
      return published;
    }
  };

  abstract int of(int published);
}

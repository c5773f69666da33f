package bifocal.cuda.flashattention;

/**
 * A forward in a pack.
 *
 * @param key what it was compiled for
 * @param function name of its function
 * @param file its library
 * @param sha256 of the library
 */
record ForwardEntry(ForwardKey key, String function, String file, String sha256) {}

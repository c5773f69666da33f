package bifocal.core.engine;

import bifocal.core.Incubating;

/**
 * An image among a sequence's tokens, as far as sharing is concerned. Its placeholders are equal
 * tokens, so its content is what tells it from other images.
 *
 * @param first its first position
 * @param last its last position, inclusive
 * @param content names the pixels and what was made of them, a hash for instance
 */
@Incubating
public record SequenceImage(int first, int last, String content) {}

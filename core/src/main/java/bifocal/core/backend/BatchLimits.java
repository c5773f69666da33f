package bifocal.core.backend;

/**
 * The largest batch a workspace is planned for.
 *
 * @param maxRequests requests of one step, padding included
 * @param maxQueryTokens query tokens of one step
 * @param maxSeqLen keys of one request
 */
public record BatchLimits(int maxRequests, int maxQueryTokens, int maxSeqLen) {}

package bifocal.reference;

/**
 * One output vector of attention.
 *
 * @param queryToken row of q
 * @param head query head
 */
public record QueryHead(int queryToken, int head) {}

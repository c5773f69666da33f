package bifocal.core.cache;

/**
 * Where one layer keeps a block, for who moves blocks to other memory and back.
 *
 * @param layer name of the layer
 * @param offset bytes from the start of {@link KvCachePool#memory}
 * @param bytes size of the record
 */
public record BlockRecord(String layer, long offset, long bytes) {}

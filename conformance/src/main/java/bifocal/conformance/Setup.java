package bifocal.conformance;

import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * What a rig is set up with.
 *
 * @param layer the layer
 * @param seed decides numbers and the order of blocks
 * @param values queries, keys and values
 * @param blockSize tokens per block, absent for the usual one
 * @param scales scales of a quantised cache
 * @param sequences sequences the cache has room for
 * @param maxSeqLen tokens of one sequence
 * @param stepsInFlight batches that may be alive at once
 * @param blockStride bytes from block to block when the cache lies in reserved address space
 * @param firstBlock number of the first block that a sequence has
 * @param guarded whether memory ends at pages without access
 * @param orderedBlocks whether blocks are handed out in ascending order
 * @param outType type of the output, absent for the queries' own
 */
record Setup(
    Dense layer,
    long seed,
    ValueSource values,
    Option<Integer> blockSize,
    KvScales scales,
    int sequences,
    int maxSeqLen,
    int stepsInFlight,
    Option<Long> blockStride,
    int firstBlock,
    boolean guarded,
    boolean orderedBlocks,
    Option<DType> outType) {

  static Setup of(Dense layer, long seed) {
    return new Setup(
        layer,
        seed,
        ValueSource.seeded(seed),
        Option.none(),
        KvScales.ONE,
        8,
        160,
        1,
        Option.none(),
        1,
        false,
        false,
        Option.none());
  }

  Setup withValues(ValueSource other) {
    return new Setup(
        layer,
        seed,
        other,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withBlockSize(int tokens) {
    return new Setup(
        layer,
        seed,
        values,
        Option.some(tokens),
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withScales(KvScales other) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        other,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withRoom(int forSequences, int tokensEach) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        forSequences,
        tokensEach,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withStepsInFlight(int count) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        count,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withBlockStride(long bytes) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        Option.some(bytes),
        firstBlock,
        guarded,
        orderedBlocks,
        outType);
  }

  /** The same, back to back, with the blocks before the first one reserved and never used. */
  Setup withBlocksFrom(int number, long bytesEach) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        Option.some(bytesEach),
        number,
        guarded,
        orderedBlocks,
        outType);
  }

  Setup withGuardPages() {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        true,
        orderedBlocks,
        outType);
  }

  Setup withOrderedBlocks() {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        true,
        outType);
  }

  Setup withOutType(DType type) {
    return new Setup(
        layer,
        seed,
        values,
        blockSize,
        scales,
        sequences,
        maxSeqLen,
        stepsInFlight,
        blockStride,
        firstBlock,
        guarded,
        orderedBlocks,
        Option.some(type));
  }

  @Override
  public String toString() {
    return layer
        + blockSize.map(size -> ", blocks of " + size).getOrElse("")
        + (scales.isOne() ? "" : ", " + scales)
        + ", seed "
        + seed;
  }
}

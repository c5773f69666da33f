package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class PrefixSharingTest {
  private static final int BLOCK = 4;
  private static final int BLOCKS = 12;
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, BLOCK, 1, 2, 2, KvScales.ONE);

  private final KvCachePool pool =
      KvCachePool.allocate(
          Vector.of(
              new KvCachePool.Group("group", Vector.of("first", "second"), SPEC, BLOCKS + 1),
              new KvCachePool.Group("other", Vector.of("third"), SPEC, BLOCKS + 1)));
  private final KvBlocks blocks = pool.group("group");
  private final BlockTable table = BlockTable.allocate(blocks, 4, 40);
  private final MemorySegment slots = MemorySegment.ofArray(new long[64]);

  @AfterEach
  void close() {
    table.close();
    pool.close();
  }

  @Test
  void aSequenceBeginsInTheBlocksOfAnEqualBeginning() {
    compute(0, tokens(0, 11));
    SequenceKeys longer = tokens(0, 14);
    assertThat(table.begin(1, longer, Integer.MAX_VALUE)).isEqualTo(8);
    assertThat(row(1)).startsWith(row(0)[0], row(0)[1], 0);
    table.append(1, 6, slots, 0);
    assertThat(row(1)[2]).isNotEqualTo(row(0)[2]);
    assertThat(blocks.free()).isEqualTo(BLOCKS - 5);
  }

  @Test
  void aBeginningThatDiffersInOneTokenEndsWhereItDiffers() {
    compute(0, tokens(0, 12));
    SequenceKeys other = SequenceKeys.of(blocks);
    other.append(0, 1, 2, 3, 4, 5, 99, 7, 8, 9, 10, 11);
    other.append(12);
    assertThat(table.begin(1, other, Integer.MAX_VALUE)).isEqualTo(4);
  }

  @Test
  void equalTokensBehindDifferentOnesAreNotTheSame() {
    compute(0, tokens(0, 12));
    SequenceKeys shifted = tokens(4, 13);
    assertThat(table.begin(1, shifted, Integer.MAX_VALUE)).isZero();
  }

  @Test
  void theLastTokenIsAlwaysLeftToCompute() {
    compute(0, tokens(0, 8));
    assertThat(table.begin(1, tokens(0, 8), Integer.MAX_VALUE)).isEqualTo(4);
    assertThat(table.begin(2, tokens(0, 9), Integer.MAX_VALUE)).isEqualTo(8);
    assertThat(table.begin(3, SequenceKeys.of(blocks), Integer.MAX_VALUE)).isZero();
  }

  @Test
  void theHostMayAskForLess() {
    compute(0, tokens(0, 12));
    assertThat(blocks.known(tokens(0, 12))).isEqualTo(3);
    assertThat(table.begin(1, tokens(0, 12), 7)).isEqualTo(4);
    assertThat(table.begin(2, tokens(0, 12), 0)).isZero();
    assertRefused(ErrorCode.NEGATIVE, () -> table.begin(3, tokens(0, 12), -1));
  }

  @Test
  void nothingIsFoundBeforeItIsPublished() {
    table.append(0, 12, slots, 0);
    assertThat(blocks.known(tokens(0, 12))).isZero();
    table.publish(0, tokens(0, 12));
    assertThat(blocks.known(tokens(0, 12))).isEqualTo(3);
  }

  @Test
  void onlyFullBlocksThatTheRowHoldsArePublished() {
    table.append(0, 7, slots, 0);
    table.publish(0, tokens(0, 12));
    assertThat(blocks.known(tokens(0, 12))).isEqualTo(1);
  }

  @Test
  void twoImagesWithEqualPlaceholdersAreNeverTheSame() {
    compute(0, withImage(6, 13, "cat"));
    assertThat(blocks.known(withImage(6, 13, "cat"))).isEqualTo(4);
    assertThat(blocks.known(withImage(6, 13, "dog"))).as("the text before").isEqualTo(1);
    assertThat(blocks.known(placeholders(16))).as("no image at all").isEqualTo(1);
  }

  @Test
  void aBlockInsideAnImageIsNamedByTheWholeImage() {
    // Blocks 1 and 2 hold nothing but placeholders; what follows the image is text again.
    SequenceKeys cat = withImage(4, 11, "cat");
    SequenceKeys dog = withImage(4, 11, "dog");
    assertThat(cat.key(0)).isEqualTo(dog.key(0));
    for (int block = 1; block < 4; block++) {
      assertThat(cat.key(block)).as("block %d", block).isNotEqualTo(dog.key(block));
    }
  }

  @Test
  void thePlaceInTheImageAndItsLengthArePartOfTheName() {
    SequenceKeys image = withImage(6, 13, "cat");
    assertThat(withImage(5, 12, "cat").key(1)).isNotEqualTo(image.key(1));
    assertThat(withImage(6, 14, "cat").key(1)).isNotEqualTo(image.key(1));
    assertThat(withImage(6, 13, "cat").key(1)).isEqualTo(image.key(1));
  }

  @Test
  void twoImagesInOneBlockAreTold() {
    SequenceKeys ab = SequenceKeys.of(blocks);
    ab.image(0, 1, "a");
    ab.image(2, 3, "b");
    SequenceKeys ba = SequenceKeys.of(blocks);
    ba.image(0, 1, "b");
    ba.image(2, 3, "a");
    SequenceKeys one = SequenceKeys.of(blocks);
    one.image(0, 3, "ab");
    for (SequenceKeys keys : List.of(ab, ba, one)) {
      keys.append(7, 7, 7, 7);
    }
    assertThat(List.of(ab.key(0), ba.key(0), one.key(0))).doesNotHaveDuplicates();
  }

  @Test
  void theContractTheGroupAndTheSaltAreInEveryName() {
    List<BlockKey> keys = new ArrayList<>();
    keys.add(tokens(0, 4).key(0));
    keys.add(named(SequenceKeys.of(blocks, "tenant")));
    keys.add(named(SequenceKeys.of(pool.group("other"))));
    for (KvCacheSpec spec :
        List.of(
            spec(KvLayouts.HND, KvCacheDtype.FLOAT32, 1, KvScales.ONE),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 1, KvScales.ONE),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E5M2, 1, KvScales.ONE),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 1, new KvScales.PerTensor(0.5f, 1f)),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 1, new KvScales.PerTensor(1f, 0.5f)),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 2, perHead(1f, 0.5f)),
            spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 2, perHead(0.5f, 1f)),
            spec(KvLayouts.NHD, KvCacheDtype.INT8_PER_TOKEN_HEAD, 1, KvScales.ONE),
            spec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 2, KvScales.ONE))) {
      try (KvCachePool like =
          KvCachePool.allocate(
              Vector.of(new KvCachePool.Group("group", Vector.of("layer"), spec, 2)))) {
        keys.add(named(SequenceKeys.of(like.group("group"))));
      }
    }
    assertThat(keys).doesNotHaveDuplicates();
  }

  private static KvCacheSpec spec(KvLayout layout, KvCacheDtype dtype, int heads, KvScales scales) {
    return new KvCacheSpec(layout, dtype, BLOCK, heads, 2, 2, scales);
  }

  private static KvScales perHead(float first, float second) {
    return new KvScales.PerHead(new float[] {first, second}, new float[] {1f, 1f});
  }

  private static BlockKey named(SequenceKeys keys) {
    keys.append(0, 1, 2, 3);
    return keys.key(0);
  }

  @Test
  void namesAreTheSameInEveryJvm() {
    assertThat(withImage(2, 5, "cat").key(1))
        .hasToString("2b0229f58b5050e74e7d16f54bee7b2c5bb7f7227a7c47fbdf88fc670429bbd6");
    assertThat(BlockKey.of(tokens(0, 4).key(0).bytes())).isEqualTo(tokens(0, 4).key(0));
  }

  @Test
  void keysOfAnotherGroupAreRefused() {
    SequenceKeys foreign = SequenceKeys.of(pool.group("other"));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> blocks.known(foreign));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> table.begin(0, foreign, 8));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> table.publish(0, foreign));
  }

  @Test
  void imagesAreAnnouncedOnceAndBeforeTheirTokens() {
    SequenceKeys keys = tokens(0, 6);
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> keys.image(5, 9, "late"));
    assertRefused(ErrorCode.IMAGE_REVERSED, () -> keys.image(9, 8, "reversed"));
    assertRefused(ErrorCode.NEGATIVE, () -> keys.image(-1, 8, "negative"));
    keys.image(6, 9, "first");
    assertRefused(ErrorCode.IMAGE_OVERLAP, () -> keys.image(9, 10, "overlapping"));
    keys.image(10, 10, "second");
  }

  @Test
  void aReleasedRowStaysInTheCacheUntilItsBlocksAreNeeded() {
    compute(0, tokens(0, 12));
    int[] held = Arrays.copyOf(row(0), 3);
    table.release(0);
    assertThat(blocks.free()).isEqualTo(BLOCKS);
    assertThat(blocks.cached()).isEqualTo(3);
    assertThat(table.begin(1, tokens(0, 13), Integer.MAX_VALUE)).isEqualTo(12);
    assertThat(row(1)).startsWith(held);
    assertThat(blocks.cached()).isZero();
    assertThat(blocks.free()).isEqualTo(BLOCKS - 3);
  }

  @Test
  void blocksWithoutKnownContentAreLeasedFirstThenTheLongestUnusedFromItsEnd() {
    compute(0, tokens(0, 12));
    compute(1, tokens(100, 108));
    table.release(0);
    table.release(1);
    BlockLease empty = blocks.lease(BLOCKS - 5);
    assertThat(blocks.known(tokens(0, 12))).isEqualTo(3);
    BlockLease one = blocks.lease(1);
    assertThat(blocks.known(tokens(0, 12))).isEqualTo(2);
    BlockLease two = blocks.lease(2);
    assertThat(blocks.known(tokens(0, 12))).isZero();
    assertThat(blocks.known(tokens(100, 108))).isEqualTo(2);
    for (BlockLease lease : List.of(empty, one, two)) {
      lease.close();
    }
  }

  @Test
  void whatIsReadAgainIsUsedAgain() {
    compute(0, tokens(0, 4));
    compute(1, tokens(100, 104));
    table.release(0);
    table.release(1);
    table.begin(2, tokens(0, 5), Integer.MAX_VALUE);
    table.release(2);
    try (BlockLease lease = blocks.lease(BLOCKS - 1)) {
      assertThat(lease.size()).isEqualTo(BLOCKS - 1);
      assertThat(blocks.known(tokens(100, 104))).isZero();
      assertThat(blocks.known(tokens(0, 4))).isEqualTo(1);
    }
  }

  @Test
  void anEvictedBlockIsFullOfZerosForItsNextHolder() {
    compute(0, tokens(0, 4));
    blocks.view("first").tokens(KvLayouts.NHD).write(BLOCK, 0, numbers(1, 2), numbers(3, 4));
    table.release(0);
    try (BlockLease all = blocks.lease(BLOCKS)) {
      float[] key = new float[2];
      blocks.view("first").tokens(KvLayouts.NHD).readKey(BLOCK, 0, key);
      assertThat(key).containsOnly(0);
      assertThat(all.size()).isEqualTo(BLOCKS);
    }
  }

  @Test
  void withoutFreeBlocksNothingIsLeasedAndNothingForgotten() {
    compute(0, tokens(0, 12));
    table.release(0);
    try (BlockLease held = blocks.lease(BLOCKS - 3)) {
      assertRefused(ErrorCode.POOL_EXHAUSTED, () -> blocks.lease(4));
      assertThat(blocks.free()).isEqualTo(3);
      assertThat(blocks.known(tokens(0, 12))).isEqualTo(3);
      assertThat(held.size()).isEqualTo(BLOCKS - 3);
    }
  }

  @Test
  void aForkedRowCopiesTheBlockItWritesAndSharesTheOthers() {
    compute(0, tokens(0, 6));
    blocks.view("second").tokens(KvLayouts.NHD).write(9, 0, numbers(1, 2), numbers(3, 4));
    table.share(0, 1);
    table.append(1, 3, slots, 0);
    assertThat(row(1)[0]).isEqualTo(row(0)[0]);
    assertThat(row(1)[1]).isNotEqualTo(row(0)[1]);
    float[] key = new float[2];
    blocks.view("second").tokens(KvLayouts.NHD).readKey(row(1)[1] * 4L + 1, 0, key);
    assertThat(key).containsExactly(1, 2);
    SequenceKeys fork = tokens(0, 6);
    fork.append(66, 67, 68);
    table.publish(1, fork);
    assertThat(blocks.known(fork)).isEqualTo(2);
    assertThat(blocks.known(tokens(0, 9))).isEqualTo(1);
  }

  @Test
  void aBlockThatMayBeWrittenIsNoLongerFound() {
    BlockLease lease = blocks.lease(1);
    lease.publish(0, tokens(0, 4).key(0));
    BlockLease second = blocks.leaseKnown(tokens(0, 4), 1);
    int copy = second.writable(0);
    assertThat(copy).isNotEqualTo(lease.block(0));
    assertThat(blocks.known(tokens(0, 4))).as("the first still holds it").isEqualTo(1);
    lease.writable(0);
    assertThat(blocks.known(tokens(0, 4))).isZero();
    lease.close();
    second.close();
    assertThat(blocks.cached()).isZero();
    assertThat(blocks.free()).isEqualTo(BLOCKS);
  }

  @Test
  void ofTwoBlocksWithOneContentTheFirstIsFound() {
    compute(0, tokens(0, 4));
    table.append(1, 4, slots, 0);
    table.publish(1, tokens(0, 4));
    table.begin(2, tokens(0, 5), 4);
    assertThat(row(2)[0]).isEqualTo(row(0)[0]);
    table.release(0);
    table.release(1);
    table.release(2);
    assertThat(blocks.cached()).isEqualTo(1);
    assertThat(blocks.free()).isEqualTo(BLOCKS);
  }

  @Test
  void whatIsForgottenIsNotFoundAndStaysWithItsHolder() {
    compute(0, tokens(0, 8));
    compute(1, tokens(100, 104));
    table.release(1);
    blocks.forget();
    assertThat(blocks.known(tokens(0, 8))).isZero();
    assertThat(blocks.known(tokens(100, 104))).isZero();
    assertThat(blocks.cached()).isZero();
    assertThat(table.tokens(0)).isEqualTo(8);
    table.release(0);
    assertThat(blocks.free()).isEqualTo(BLOCKS);
  }

  @Test
  void groupsKnowTheirOwnBlocks() {
    compute(0, tokens(0, 8));
    SequenceKeys other = SequenceKeys.of(pool.group("other"));
    other.append(IntStream.range(0, 8).toArray());
    assertThat(pool.group("other").known(other)).isZero();
  }

  /** A block leaves for other memory and comes back into another block, by its offsets alone. */
  @Test
  void aBlockIsMovedOutAndInByItsOffsets() {
    BlockLease lease = blocks.lease(2);
    for (String layer : List.of("first", "second")) {
      KvCacheView view = blocks.view(layer);
      for (int token = 0; token < BLOCK; token++) {
        long slot = (long) lease.block(0) * BLOCK + token;
        view.tokens(KvLayouts.NHD).write(slot, 0, numbers(token, 1), numbers(2, layer.length()));
      }
    }
    List<byte[]> away = new ArrayList<>();
    for (BlockRecord record : blocks.records(lease.block(0))) {
      assertThat(record.bytes()).isEqualTo(SPEC.blockBytes());
      MemorySegment bytes = pool.memory().asSlice(record.offset(), record.bytes());
      away.add(bytes.toArray(ValueLayout.JAVA_BYTE));
      bytes.fill((byte) -1);
    }
    int to = lease.block(1);
    for (int layer = 0; layer < away.size(); layer++) {
      BlockRecord record = blocks.records(to).get(layer);
      pool.memory()
          .asSlice(record.offset(), record.bytes())
          .copyFrom(MemorySegment.ofArray(away.get(layer)));
    }
    float[] numbers = new float[2];
    for (BlockRecord record : blocks.records(to)) {
      for (int token = 0; token < BLOCK; token++) {
        KvCacheView.TokenAccess tokens = blocks.view(record.layer()).tokens(KvLayouts.NHD);
        tokens.readKey((long) to * BLOCK + token, 0, numbers);
        assertThat(numbers).containsExactly(token, 1);
        tokens.readValue((long) to * BLOCK + token, 0, numbers);
        assertThat(numbers).containsExactly(2, record.layer().length());
      }
    }
    lease.close();
  }

  @Test
  void recordsOfDifferentBlocksLayersAndGroupsDoNotOverlap() {
    List<long[]> ranges = new ArrayList<>();
    for (KvBlocks group : List.of(blocks, pool.group("other"))) {
      for (int block = 0; block < group.numBlocks(); block++) {
        for (BlockRecord record : group.records(block)) {
          ranges.add(new long[] {record.offset(), record.offset() + record.bytes()});
        }
      }
    }
    ranges.sort((a, b) -> Long.compare(a[0], b[0]));
    for (int i = 1; i < ranges.size(); i++) {
      assertThat(ranges.get(i)[0]).isGreaterThanOrEqualTo(ranges.get(i - 1)[1]);
    }
    assertThat(ranges.getLast()[1]).isLessThanOrEqualTo(pool.memory().byteSize());
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> blocks.records(BLOCKS + 1));
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> blocks.records(-1));
  }

  @Test
  void manyThreadsShareBlocksWithoutLosingOne() throws InterruptedException {
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      int salt = t;
      threads.add(
          Thread.ofVirtual()
              .uncaughtExceptionHandler((thread, thrown) -> failures.add(thrown))
              .start(() -> shareAndGiveBack(salt)));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    assertThat(blocks.free()).isEqualTo(BLOCKS);
    try (BlockLease all = blocks.lease(BLOCKS)) {
      assertThat(IntStream.range(0, BLOCKS).map(all::block).distinct().count()).isEqualTo(BLOCKS);
    }
  }

  private void shareAndGiveBack(int seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 2000; i++) {
      SequenceKeys keys = tokens(random.nextInt(3), 8);
      try (BlockLease known = blocks.leaseKnown(keys, 2);
          BlockLease rest = blocks.lease(2 - known.size())) {
        for (int b = 0; b < rest.size() && known.size() + b < keys.blocks(); b++) {
          rest.publish(b, keys.key(known.size() + b));
        }
      }
    }
  }

  /** Whatever is admitted, forked, evicted and released: what a key finds holds its content. */
  @Test
  void aKeyFindsItsContentAndNothingElse() {
    for (long seed = 1; seed <= 40; seed++) {
      try (Sharing sharing = new Sharing(seed)) {
        for (int step = 0; step < 300; step++) {
          sharing.step();
        }
        sharing.end();
      }
    }
  }

  /** A host with a few rows, whose blocks carry what was written into them. */
  private static final class Sharing implements AutoCloseable {
    private static final int ROWS = 5;

    private final Random random;
    private final String seed;
    private final KvCachePool pool =
        KvCachePool.allocate(
            Vector.of(new KvCachePool.Group("g", Vector.of("layer"), SPEC, BLOCKS + 1)));
    private final KvBlocks blocks = pool.group("g");
    private final BlockTable table = BlockTable.allocate(blocks, ROWS, BLOCKS * BLOCK);
    private final MemorySegment slots = MemorySegment.ofArray(new long[BLOCKS * BLOCK]);
    private final Map<Long, String> written = new HashMap<>();
    private final String[][] content = new String[ROWS][];
    private final SequenceKeys[] keys = new SequenceKeys[ROWS];

    Sharing(long seed) {
      this.random = new Random(seed);
      this.seed = "seed " + seed;
    }

    void step() {
      int row = random.nextInt(ROWS);
      if (content[row] == null) {
        admit(row);
      } else if (random.nextInt(3) == 0) {
        table.release(row);
        content[row] = null;
      } else {
        grow(row);
      }
    }

    /** Few different tokens and images, so that beginnings are often equal. */
    private void admit(int row) {
      int length = 1 + random.nextInt(BLOCKS * BLOCK / 2);
      keys[row] = SequenceKeys.of(blocks);
      content[row] = new String[BLOCKS * BLOCK];
      int first = random.nextInt(6);
      int last = first + random.nextInt(8);
      String image = random.nextBoolean() ? "cat" : "dog";
      keys[row].image(first, last, image);
      int common = random.nextInt(length);
      String before = "";
      for (int i = 0; i < length; i++) {
        boolean inside = i >= first && i <= last;
        int token = inside || i < common ? 7 : random.nextInt(2);
        keys[row].append(token);
        before +=
            token + (inside ? "(" + image + " " + (i - first) + " of " + (last - first) + ")" : "");
        content[row][i] = before;
      }
      try {
        int known = table.begin(row, keys[row], Integer.MAX_VALUE);
        requireContent(row, known);
        table.append(row, length - known, slots, 0);
        written(row, known, length);
        table.publish(row, keys[row]);
      } catch (BifocalException e) {
        assertThat(e.code()).as(seed).isEqualTo(ErrorCode.POOL_EXHAUSTED);
        table.release(row);
        content[row] = null;
      }
    }

    private void grow(int row) {
      int length = table.tokens(row);
      int more = Math.min(1 + random.nextInt(3), BLOCKS * BLOCK - length);
      try {
        table.append(row, more, slots, 0);
      } catch (BifocalException e) {
        assertThat(e.code()).as(seed).isEqualTo(ErrorCode.POOL_EXHAUSTED);
        return;
      }
      for (int i = length; i < length + more; i++) {
        keys[row].append(3);
        content[row][i] = content[row][i - 1] + "3";
      }
      written(row, length, length + more);
      table.publish(row, keys[row]);
      requireContent(row, length + more);
    }

    private void written(int row, int from, int to) {
      for (int i = from; i < to; i++) {
        written.put(slots.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i - from), content[row][i]);
      }
    }

    private void requireContent(int row, int tokens) {
      for (int i = 0; i < tokens; i++) {
        long block =
            table.tensor().data().getAtIndex(ValueLayout.JAVA_INT, (long) row * BLOCKS + i / BLOCK);
        assertThat(written.get(block * BLOCK + i % BLOCK))
            .as("%s, row %d, token %d", seed, row, i)
            .isEqualTo(content[row][i]);
      }
    }

    void end() {
      for (int row = 0; row < ROWS; row++) {
        if (content[row] != null) {
          requireContent(row, table.tokens(row));
        }
        table.release(row);
      }
      assertThat(blocks.free()).as(seed).isEqualTo(BLOCKS);
    }

    @Override
    public void close() {
      table.close();
      pool.close();
    }
  }

  /** A row whose tokens are computed and published. */
  private void compute(int row, SequenceKeys keys) {
    table.append(row, keys.tokens(), slots, 0);
    table.publish(row, keys);
  }

  private SequenceKeys tokens(int from, int to) {
    SequenceKeys keys = SequenceKeys.of(blocks);
    keys.append(IntStream.range(from, to).toArray());
    return keys;
  }

  /** Sixteen equal tokens, of which some are an image's. */
  private SequenceKeys withImage(int first, int last, String content) {
    SequenceKeys keys = SequenceKeys.of(blocks);
    keys.image(first, last, content);
    keys.append(new int[16]);
    return keys;
  }

  private SequenceKeys placeholders(int count) {
    SequenceKeys keys = SequenceKeys.of(blocks);
    keys.append(new int[count]);
    return keys;
  }

  private static float[] numbers(float... numbers) {
    return numbers;
  }

  private int[] row(int row) {
    int[] entries = new int[10];
    for (int i = 0; i < entries.length; i++) {
      entries[i] = table.tensor().data().getAtIndex(ValueLayout.JAVA_INT, row * 10L + i);
    }
    return entries;
  }
}

package bifocal.core.batch;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.util.Arrays;

/**
 * One step's batch as the host engine describes it, for one layer group: who asks, which keys are
 * there, where they lie. Immutable once built.
 *
 * <p>A <em>request</em> is one sequence; a <em>query token</em> is one row of q. The queries of
 * request {@code r} are rows {@code queryStart(r) .. queryStart(r) + queryLen(r) - 1} of q and,
 * when keys and queries are one sequence, the last {@code queryLen(r)} of its {@code seqLen(r)}
 * positions. Requests at and beyond {@link #live()} are padding: length 0, whatever the arrays that
 * described them hold.
 */
public final class CommonAttentionMetadata {
  private static final int MASK_DECIDES = Integer.MIN_VALUE;

  private final int requests;
  private final int live;
  private final int[] queryStart;
  private final int[] queryLen;
  private final int[] seqLen;
  private final int[] blockTableRow;
  private final int[] rightWindow;
  private final boolean[] prefilling;
  private final ImageRanges images;
  private final TensorView blockTable;
  private final SlotMapping slots;
  private final boolean independentKeys;
  private final int tokens;
  private final int maxQueryLen;
  private final int maxSeqLen;

  private CommonAttentionMetadata(Builder from, Rows rows, ImageRanges images) {
    this.requests = from.requests;
    this.live = rows.count;
    this.queryStart = rows.queryStart;
    this.queryLen = rows.queryLen;
    this.seqLen = rows.seqLen;
    this.blockTableRow = rows.blockTableRow;
    this.rightWindow = rows.rightWindow;
    this.prefilling = from.prefilling;
    this.images = images;
    this.blockTable = from.blockTable;
    this.slots = from.slots;
    this.independentKeys = from.independentKeys;
    int end = 0;
    int longestQuery = 0;
    int longestSeq = 0;
    for (int r = 0; r < live; r++) {
      end = Math.max(end, queryStart[r] + queryLen[r]);
      longestQuery = Math.max(longestQuery, queryLen[r]);
      longestSeq = Math.max(longestSeq, seqLen[r]);
    }
    this.tokens = end;
    this.maxQueryLen = longestQuery;
    this.maxSeqLen = longestSeq;
  }

  /**
   * Begins a description.
   *
   * @param queryStartLoc first q row of each request and, last, the end: {@code [requests + 1]}
   * @param seqLens keys of each request after this step's were written: {@code [requests]}
   * @param blockTable int32 {@code [requests, blocks]}, on the host or the device
   * @param slots where this step's tokens go
   */
  public static Builder builder(
      int[] queryStartLoc, int[] seqLens, TensorView blockTable, SlotMapping slots) {
    return new Builder(queryStartLoc, seqLens, blockTable, slots);
  }

  /** Requests, padding included. */
  public int requests() {
    return requests;
  }

  /** Requests that are not padding. */
  public int live() {
    return live;
  }

  /** First q row of a live request. */
  public int queryStart(int request) {
    return queryStart[request];
  }

  /** Queries of a request in this step; 0 for padding. */
  public int queryLen(int request) {
    return request < live ? queryLen[request] : 0;
  }

  /** Keys of a request; 0 for padding. */
  public int seqLen(int request) {
    return request < live ? seqLen[request] : 0;
  }

  /** Absolute position of a live request's first query. */
  public int firstPosition(int request) {
    return seqLen[request] - queryLen[request];
  }

  /** Row of the block table that holds a live request's blocks. */
  public int blockTableRow(int request) {
    return blockTableRow.length == 0 ? request : blockTableRow[request];
  }

  /** Rows of q that the live requests reach: one more than the last row any of them uses. */
  public int tokens() {
    return tokens;
  }

  /** Longest query of a live request. */
  public int maxQueryLen() {
    return maxQueryLen;
  }

  /** Longest sequence of a live request. */
  public int maxSeqLen() {
    return maxSeqLen;
  }

  /** Whether no live request has a query. */
  public boolean isEmpty() {
    return maxQueryLen == 0;
  }

  /** Images of the live requests. */
  public ImageRanges images() {
    return images;
  }

  /** Block table, int32 {@code [rows, blocks]}. */
  public TensorView blockTable() {
    return blockTable;
  }

  /** Where this step's tokens go in the cache, by q row. */
  public SlotMapping slots() {
    return slots;
  }

  /** Whether queries and keys are different sequences, as in encoder-decoder attention. */
  public boolean independentKeys() {
    return independentKeys;
  }

  /** Whether the host said which requests still work on their prompt. */
  public boolean knowsPrefilling() {
    return prefilling.length > 0;
  }

  /** Whether a live request had not finished its prompt before this step. */
  public boolean prefilling(int request) {
    return prefilling[request];
  }

  /**
   * Keys a live request's queries see after themselves outside images: the mask's own, unless the
   * request is a run cut out of a request (see {@link #cut}).
   *
   * @return a count, -1 when unlimited
   */
  public int rightWindow(int request, AttentionMask mask) {
    return rightWindow.length == 0 || rightWindow[request] == MASK_DECIDES
        ? mask.rightWindow()
        : rightWindow[request];
  }

  /** Whether some request is a run that bounds its future keys by itself. */
  public boolean hasRuns() {
    return rightWindow.length > 0;
  }

  /** The same batch for a layer group that does not know images. */
  public CommonAttentionMetadata withoutImages() {
    return images.isEmpty()
        ? this
        : new CommonAttentionMetadata(toBuilder(), rows(), ImageRanges.NONE);
  }

  /**
   * Requires that every image a mask looks at is well formed and whole: no range reversed or
   * overlapping another, and none of which this step would leave some keys uncomputed.
   *
   * @throws BifocalException {@code NEGATIVE}, {@code IMAGE_REVERSED}, {@code IMAGE_OVERLAP} or
   *     {@code IMAGE_CUT}, naming the request
   */
  public void requireWholeImages(AttentionMask mask) {
    if (!mask.seesImages() || images.isEmpty()) {
      return;
    }
    for (int r = 0; r < live; r++) {
      requireWellFormedImages(r);
      requireApartImages(r);
      requireUncutImages(r);
    }
  }

  private void requireWellFormedImages(int r) {
    for (int i = 0; i < images.count(r); i++) {
      int first = images.first(r, i);
      int last = images.last(r, i);
      if (first < 0 || last < 0) {
        throw refuse(ErrorCode.NEGATIVE, r, image(first, last), "positions from 0");
      }
      if (first > last) {
        throw refuse(ErrorCode.IMAGE_REVERSED, r, image(first, last), "first <= last");
      }
    }
  }

  private void requireApartImages(int r) {
    for (int i = 1; i < images.count(r); i++) {
      int first = images.first(r, i);
      int before = images.last(r, i - 1);
      if (first <= before) {
        throw refuse(
            ErrorCode.IMAGE_OVERLAP,
            r,
            image(first, images.last(r, i)),
            "a first position beyond " + before);
      }
    }
  }

  private void requireUncutImages(int r) {
    if (queryLen[r] == 0) {
      return;
    }
    for (int i = 0; i < images.count(r); i++) {
      int first = images.first(r, i);
      int last = images.last(r, i);
      if (first < seqLen[r] && last >= seqLen[r]) {
        throw refuse(
            ErrorCode.IMAGE_CUT,
            r,
            image(first, last) + " with keys up to " + (seqLen[r] - 1),
            "a step that ends before the image or holds all of it");
      }
    }
  }

  private static String image(int first, int last) {
    return "image [" + first + "," + last + "]";
  }

  private static BifocalException refuse(ErrorCode code, int request, String seen, String wanted) {
    return BifocalException.ofRequest(code, request, seen, wanted);
  }

  /**
   * The same requests moved together: query rows back to back, blocks of request {@code r} in row
   * {@code r} of another block table. The slots still go by the rows of the whole batch.
   *
   * @param firstRow q row of the first query
   * @param table int32 {@code [live, blocks]}
   */
  public CommonAttentionMetadata packed(int firstRow, TensorView table) {
    table.require("packed block table", DType.INT32, table.device(), live, -1);
    Rows packed = rows();
    packed.queryStart = new int[live];
    packed.blockTableRow = new int[0];
    int row = firstRow;
    for (int r = 0; r < live; r++) {
      packed.queryStart[r] = row;
      row += queryLen[r];
    }
    Builder builder = toBuilder(table);
    builder.requests = live;
    return new CommonAttentionMetadata(builder, packed, images);
  }

  /** Begins a batch of some of this batch's requests, or of runs cut out of them. */
  public Cut cut(int capacity) {
    return new Cut(this, capacity);
  }

  private Builder toBuilder() {
    return toBuilder(blockTable);
  }

  private Builder toBuilder(TensorView table) {
    Builder builder = new Builder(new int[0], new int[0], table, slots);
    builder.requests = requests;
    builder.prefilling = prefilling;
    builder.independentKeys = independentKeys;
    return builder;
  }

  private Rows rows() {
    Rows rows = new Rows();
    rows.count = live;
    rows.queryStart = queryStart;
    rows.queryLen = queryLen;
    rows.seqLen = seqLen;
    rows.blockTableRow = blockTableRow;
    rows.rightWindow = rightWindow;
    return rows;
  }

  private static final class Rows {
    private int count;
    private int[] queryStart = {};
    private int[] queryLen = {};
    private int[] seqLen = {};
    private int[] blockTableRow = {};
    private int[] rightWindow = {};
  }

  /**
   * Part of a batch over the same q rows, block table and slots. The parts keep their place: a
   * child that reads {@link #queryStart} and {@link #blockTableRow} needs no copy.
   */
  public static final class Cut {
    private final CommonAttentionMetadata whole;
    private final Rows rows = new Rows();
    private final int[] source;

    private Cut(CommonAttentionMetadata whole, int capacity) {
      if (capacity < 0) {
        throw BifocalException.of(ErrorCode.NEGATIVE, "capacity of a part", capacity, "at least 0");
      }
      this.whole = whole;
      rows.queryStart = new int[capacity];
      rows.queryLen = new int[capacity];
      rows.seqLen = new int[capacity];
      rows.blockTableRow = new int[capacity];
      source = new int[capacity];
    }

    /**
     * Adds a whole request.
     *
     * @throws BifocalException {@code LIVE_EXCEEDS_REQUESTS} or {@code SHAPE_MISMATCH}
     */
    public Cut request(int request) {
      requireLive(request);
      return add(
          request,
          whole.queryStart[request],
          whole.queryLen[request],
          whole.seqLen[request],
          whole.hasRuns() ? whole.rightWindow[request] : MASK_DECIDES);
    }

    /**
     * Adds the queries at positions {@code first .. last} of a request as a request of their own
     * whose keys end at {@code last}.
     *
     * @param rightWindow keys its queries see after themselves, -1 when unlimited
     * @throws BifocalException {@code LIVE_EXCEEDS_REQUESTS} or {@code SHAPE_MISMATCH}
     */
    public Cut run(int request, int first, int last, int rightWindow) {
      requireLive(request);
      if (first < whole.firstPosition(request) || last < first || last >= whole.seqLen[request]) {
        throw refuse(
            ErrorCode.SHAPE_MISMATCH,
            request,
            "run of queries " + first + ".." + last,
            "a part of " + whole.firstPosition(request) + ".." + (whole.seqLen[request] - 1));
      }
      return add(
          request,
          whole.queryStart[request] + first - whole.firstPosition(request),
          last - first + 1,
          last + 1,
          rightWindow);
    }

    private void requireLive(int request) {
      if (request < 0 || request >= whole.live) {
        throw BifocalException.of(
            ErrorCode.LIVE_EXCEEDS_REQUESTS,
            "request of a part",
            request,
            "one of " + whole.live + " live requests");
      }
    }

    private Cut add(int request, int queryStart, int queryLen, int seqLen, int rightWindow) {
      if (rows.count == source.length) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH,
            "requests of a part",
            rows.count + 1,
            "at most " + source.length);
      }
      int at = rows.count++;
      rows.queryStart[at] = queryStart;
      rows.queryLen[at] = queryLen;
      rows.seqLen[at] = seqLen;
      rows.blockTableRow[at] = whole.blockTableRow(request);
      source[at] = request;
      if (rightWindow != MASK_DECIDES && rows.rightWindow.length == 0) {
        rows.rightWindow = new int[rows.queryStart.length];
        Arrays.fill(rows.rightWindow, MASK_DECIDES);
      }
      if (rows.rightWindow.length > 0) {
        rows.rightWindow[at] = rightWindow;
      }
      return this;
    }

    /** The part, with the images of its requests. */
    public CommonAttentionMetadata withImages() {
      int[][] kept = new int[rows.count][];
      for (int at = 0; at < rows.count; at++) {
        int request = source[at];
        kept[at] = new int[2 * whole.images.count(request)];
        for (int i = 0; i < whole.images.count(request); i++) {
          kept[at][2 * i] = whole.images.first(request, i);
          kept[at][2 * i + 1] = whole.images.last(request, i);
        }
      }
      return build(whole.images.isEmpty() ? ImageRanges.NONE : ImageRanges.of(kept, rows.count));
    }

    /** The part, without images. */
    public CommonAttentionMetadata withoutImages() {
      return build(ImageRanges.NONE);
    }

    private CommonAttentionMetadata build(ImageRanges images) {
      Builder builder = whole.toBuilder();
      builder.requests = rows.count;
      if (whole.knowsPrefilling()) {
        boolean[] flags = new boolean[rows.count];
        for (int at = 0; at < rows.count; at++) {
          flags[at] = whole.prefilling[source[at]];
        }
        builder.prefilling = flags;
      }
      return new CommonAttentionMetadata(builder, rows, images);
    }
  }

  /** Collects and checks a description. */
  public static final class Builder {
    private final int[] queryStartLoc;
    private final int[] seqLens;
    private final TensorView blockTable;
    private final SlotMapping slots;
    private int requests;
    private int live;
    private ImageRanges images = ImageRanges.NONE;
    private boolean[] prefilling = {};
    private boolean independentKeys;

    private Builder(int[] queryStartLoc, int[] seqLens, TensorView blockTable, SlotMapping slots) {
      this.queryStartLoc = queryStartLoc;
      this.seqLens = seqLens;
      this.blockTable = blockTable;
      this.slots = slots;
      this.requests = seqLens.length;
      this.live = seqLens.length;
    }

    /** Requests that are not padding; all of them unless said. */
    public Builder live(int count) {
      this.live = count;
      return this;
    }

    /** Images by request. */
    public Builder images(ImageRanges ranges) {
      this.images = ranges;
      return this;
    }

    /** Which requests had not finished their prompt before this step: {@code [requests]}. */
    public Builder prefilling(boolean[] flags) {
      this.prefilling = flags.clone();
      return this;
    }

    /** Queries and keys are different sequences; a query may outnumber its keys. */
    public Builder independentKeys() {
      this.independentKeys = true;
      return this;
    }

    /**
     * Checks the live requests and builds.
     *
     * @throws BifocalException {@code NEGATIVE}, {@code OVERFLOW}, {@code QUERY_EXCEEDS_SEQ},
     *     {@code QUERY_START_INVALID}, {@code LIVE_EXCEEDS_REQUESTS}, {@code SHAPE_MISMATCH} or
     *     {@code DTYPE_MISMATCH}, naming the request
     */
    public CommonAttentionMetadata build() {
      requireShapes();
      Rows rows = new Rows();
      rows.count = live;
      rows.queryStart = Arrays.copyOf(queryStartLoc, live);
      rows.queryLen = new int[live];
      rows.seqLen = Arrays.copyOf(seqLens, live);
      for (int r = 0; r < live; r++) {
        rows.queryLen[r] = checkedQueryLen(r);
      }
      return new CommonAttentionMetadata(this, rows, images);
    }

    private void requireShapes() {
      if (queryStartLoc.length != requests + 1) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "query_start_loc", queryStartLoc.length, requests + 1);
      }
      if (live < 0) {
        throw BifocalException.of(ErrorCode.NEGATIVE, "live requests", live, "at least 0");
      }
      if (live > requests) {
        throw BifocalException.of(
            ErrorCode.LIVE_EXCEEDS_REQUESTS, "live requests", live, "at most " + requests);
      }
      blockTable.require("block table", DType.INT32, blockTable.device(), -1, -1);
      if (blockTable.size(0) < live) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "rows of the block table", blockTable.size(0), live);
      }
      if (prefilling.length > 0 && prefilling.length < live) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "prefilling flags", prefilling.length, live);
      }
      if (live > 0 && queryStartLoc[0] < 0) {
        throw BifocalException.of(
            ErrorCode.NEGATIVE, "query_start_loc of request 0", queryStartLoc[0], "at least 0");
      }
    }

    private int checkedQueryLen(int r) {
      long length = (long) queryStartLoc[r + 1] - queryStartLoc[r];
      if (length < 0) {
        throw refuse(
            ErrorCode.QUERY_START_INVALID,
            r,
            "query rows " + queryStartLoc[r] + ".." + queryStartLoc[r + 1],
            "ascending");
      }
      if (length > Integer.MAX_VALUE) {
        throw refuse(ErrorCode.OVERFLOW, r, length + " queries", "at most " + Integer.MAX_VALUE);
      }
      if (seqLens[r] < 0) {
        throw refuse(ErrorCode.NEGATIVE, r, "seq_len " + seqLens[r], "at least 0");
      }
      if (!independentKeys && length > seqLens[r]) {
        throw refuse(
            ErrorCode.QUERY_EXCEEDS_SEQ, r, "query_len " + length, "at most seq_len " + seqLens[r]);
      }
      return (int) length;
    }
  }

  /** Prefilling flags by request, absent when the host did not say. */
  public Option<boolean[]> prefilling() {
    return knowsPrefilling() ? Option.some(prefilling.clone()) : Option.none();
  }
}

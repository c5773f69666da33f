package bifocal.cuda.flashinfer;

import bifocal.core.batch.CommonAttentionMetadata;
import java.util.Arrays;

/**
 * Runs of queries that one launch computes: whole requests, or parts of requests whose keys end
 * with the run. Pages that no query of a run sees are left out in front, since every mask is
 * aligned to the end of the keys. It belongs to one build.
 */
final class RunList {
  private final int pageSize;
  private final int leftWindow;
  private int[] queryStart;
  private int[] queryLen;
  private int[] tableRow;
  private int[] firstPage;
  private int[] pages;
  private int[] seqLen;
  private int size;
  private int queries;

  /**
   * An empty list.
   *
   * @param leftWindow keys that a query sees before itself, -1 when all
   */
  RunList(int pageSize, int leftWindow, int capacity) {
    this.pageSize = pageSize;
    this.leftWindow = leftWindow;
    this.queryStart = new int[capacity];
    this.queryLen = new int[capacity];
    this.tableRow = new int[capacity];
    this.firstPage = new int[capacity];
    this.pages = new int[capacity];
    this.seqLen = new int[capacity];
  }

  /** Adds a live request, which has a query. */
  void add(CommonAttentionMetadata batch, int request) {
    if (size == queryStart.length) {
      grow();
    }
    int first = leftWindow < 0 ? 0 : Math.max(0, batch.firstPosition(request) - leftWindow);
    int skipped = first / pageSize;
    queryStart[size] = batch.queryStart(request);
    queryLen[size] = batch.queryLen(request);
    tableRow[size] = batch.blockTableRow(request);
    firstPage[size] = skipped;
    pages[size] = Math.ceilDiv(batch.seqLen(request), pageSize) - skipped;
    seqLen[size] = batch.seqLen(request) - skipped * pageSize;
    queries += queryLen[size];
    size++;
  }

  private void grow() {
    int larger = Math.max(8, 2 * size);
    queryStart = Arrays.copyOf(queryStart, larger);
    queryLen = Arrays.copyOf(queryLen, larger);
    tableRow = Arrays.copyOf(tableRow, larger);
    firstPage = Arrays.copyOf(firstPage, larger);
    pages = Arrays.copyOf(pages, larger);
    seqLen = Arrays.copyOf(seqLen, larger);
  }

  int size() {
    return size;
  }

  /** Queries of all runs. */
  int queries() {
    return queries;
  }

  int queryStart(int run) {
    return queryStart[run];
  }

  int queryLen(int run) {
    return queryLen[run];
  }

  int queryEnd(int run) {
    return queryStart[run] + queryLen[run];
  }

  int tableRow(int run) {
    return tableRow[run];
  }

  /** First page of the request that the run reads. */
  int firstPage(int run) {
    return firstPage[run];
  }

  /** Pages that the run reads. */
  int pages(int run) {
    return pages[run];
  }

  /** Keys from the first page on until the run's last. */
  int seqLen(int run) {
    return seqLen[run];
  }

  /** Keys in the last page. */
  int lastPageLen(int run) {
    return seqLen[run] - (pages[run] - 1) * pageSize;
  }

  /** Whether the rows of the runs follow each other without gaps. */
  boolean rowsTogether() {
    boolean together = true;
    for (int run = 1; run < size; run++) {
      together &= queryStart[run] == queryEnd(run - 1);
    }
    return together;
  }

  /** Smallest row of a run. */
  int firstRow() {
    int first = Integer.MAX_VALUE;
    for (int run = 0; run < size; run++) {
      first = Math.min(first, queryStart[run]);
    }
    return size == 0 ? 0 : first;
  }

  /** One more than the largest row of a run. */
  int endRow() {
    int end = 0;
    for (int run = 0; run < size; run++) {
      end = Math.max(end, queryEnd(run));
    }
    return end;
  }

  /** Whether every run is one query. */
  boolean singles() {
    return queries == size;
  }
}

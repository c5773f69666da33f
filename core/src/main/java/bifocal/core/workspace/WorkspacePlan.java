package bifocal.core.workspace;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * The workspace a backend needs, known before the first step. Zeroed regions lie first and share
 * with nobody; scratch regions of different backends lie over each other, because only one of them
 * runs at a time; memory leased per step comes last, once for each step in flight.
 *
 * @param zeroed placed zeroed regions
 * @param scratch placed scratch regions
 * @param stepBytes bytes that one step's builds lease at most
 */
public record WorkspacePlan(Seq<Placed> zeroed, Seq<Placed> scratch, long stepBytes) {
  /** Alignment of every region, in bytes. */
  public static final long ALIGNMENT = 256;

  /** Needs nothing. */
  public static final WorkspacePlan NONE = new WorkspacePlan(Vector.empty(), Vector.empty(), 0);

  /**
   * A region and its byte offset from the start of its class (zeroed or scratch).
   *
   * @param region what was asked for, under its full name
   * @param offset bytes
   */
  public record Placed(WorkspaceRegion region, long offset) {
    private long end() {
      return align(sum(offset, region.bytes()));
    }

    private Placed moved(String prefix, long by) {
      return new Placed(
          new WorkspaceRegion(prefix + region.name(), region.bytes(), region.state()),
          sum(offset, by));
    }
  }

  /**
   * Places regions one after another.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} for two regions of one name, {@code
   *     NEGATIVE}
   */
  public static WorkspacePlan of(long stepBytes, WorkspaceRegion... regions) {
    if (stepBytes < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "bytes of a step", stepBytes, "at least 0");
    }
    Seq<String> names = Vector.of(regions).map(WorkspaceRegion::name);
    if (names.distinct().size() != regions.length) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "regions of a workspace",
          names.mkString(", "),
          "each named once");
    }
    Seq<Placed> zeroed = Vector.empty();
    Seq<Placed> scratch = Vector.empty();
    for (WorkspaceRegion region : regions) {
      switch (region.state()) {
        case ZEROED -> zeroed = zeroed.append(new Placed(region, end(zeroed)));
        case SCRATCH -> scratch = scratch.append(new Placed(region, end(scratch)));
      }
    }
    return new WorkspacePlan(zeroed, scratch, align(stepBytes));
  }

  /**
   * One plan for two backends of which one runs at a time: zeroed regions side by side, scratch
   * regions over each other, leases of both.
   *
   * @param prefixA put before the names of {@code a}'s regions
   * @param prefixB put before the names of {@code b}'s regions
   */
  public static WorkspacePlan overlay(
      String prefixA, WorkspacePlan a, String prefixB, WorkspacePlan b) {
    long zeroedA = end(a.zeroed);
    return new WorkspacePlan(
        a.zeroed
            .map(p -> p.moved(prefixA, 0))
            .appendAll(b.zeroed.map(p -> p.moved(prefixB, zeroedA))),
        a.scratch.map(p -> p.moved(prefixA, 0)).appendAll(b.scratch.map(p -> p.moved(prefixB, 0))),
        sum(a.stepBytes, b.stepBytes));
  }

  /** The same plan with another scratch region behind the present ones. */
  public WorkspacePlan withScratch(String name, long bytes) {
    return new WorkspacePlan(
        zeroed,
        scratch.append(
            new Placed(
                new WorkspaceRegion(name, bytes, WorkspaceRegion.State.SCRATCH), end(scratch))),
        stepBytes);
  }

  /** The same plan with more leased memory per step. */
  public WorkspacePlan withStepBytes(long more) {
    return new WorkspacePlan(zeroed, scratch, sum(stepBytes, align(more)));
  }

  /**
   * The larger of two plans of the same backend, region by region and lease by lease. A region that
   * one of them lacks is taken from the other.
   *
   * @throws BifocalException {@code INTERNAL} when a region is zeroed in one and scratch in the
   *     other
   */
  public WorkspacePlan max(WorkspacePlan other) {
    if (names(zeroed).exists(names(other.scratch)::contains)
        || names(scratch).exists(names(other.zeroed)::contains)) {
      throw BifocalException.of(
          ErrorCode.INTERNAL, "plans of one backend give one region two different states");
    }
    return new WorkspacePlan(
        larger(zeroed, other.zeroed),
        larger(scratch, other.scratch),
        Math.max(stepBytes, other.stepBytes));
  }

  /** All regions, under their full names. */
  public Seq<WorkspaceRegion> regions() {
    return zeroed.appendAll(scratch).map(Placed::region);
  }

  /** Bytes of the zeroed regions. */
  public long zeroedBytes() {
    return end(zeroed);
  }

  /** Bytes of the scratch regions. */
  public long scratchBytes() {
    return end(scratch);
  }

  /** Bytes of everything with this many steps in flight. */
  public long totalBytes(int stepsInFlight) {
    if (stepsInFlight < 0 || (stepsInFlight > 0 && stepBytes > Long.MAX_VALUE / stepsInFlight)) {
      throw BifocalException.of(
          stepsInFlight < 0 ? ErrorCode.NEGATIVE : ErrorCode.OVERFLOW,
          "steps in flight",
          stepsInFlight,
          "a number whose " + stepBytes + " bytes each fit 64 bits");
    }
    return sum(sum(zeroedBytes(), scratchBytes()), stepBytes * stepsInFlight);
  }

  static long align(long bytes) {
    if (bytes > Long.MAX_VALUE - ALIGNMENT) {
      throw BifocalException.of(ErrorCode.OVERFLOW, "size of a workspace region", bytes, "64 bits");
    }
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  private static long end(Seq<Placed> placed) {
    return placed.map(Placed::end).max().getOrElse(0L);
  }

  private static long sum(long a, long b) {
    if (a > Long.MAX_VALUE - b) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, "size of a workspace", a + " + " + b, "64 bits");
    }
    return a + b;
  }

  private static Seq<String> names(Seq<Placed> placed) {
    return placed.map(p -> p.region().name());
  }

  private static Seq<Placed> larger(Seq<Placed> left, Seq<Placed> right) {
    Seq<Placed> merged = Vector.empty();
    for (String name : names(left).appendAll(names(right)).distinct()) {
      WorkspaceRegion largest =
          left.appendAll(right)
              .map(Placed::region)
              .filter(region -> region.name().equals(name))
              .maxBy(WorkspaceRegion::bytes)
              .get();
      merged = merged.append(new Placed(largest, end(merged)));
    }
    return merged;
  }
}

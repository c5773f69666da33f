package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.ffi.Peaks;
import bifocal.benchmarks.cpu.ffi.Peaks.Instruction;
import bifocal.core.ffi.HugePages;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The machine's peaks as entrants that take their turns with what is measured. */
final class MachinePeaks implements AutoCloseable {
  static final String READ = "dram_read";
  static final String COPY = "memcpy";
  private static final long READ_BYTES = 1L << 30;
  private static final long PIECE = 1L << 28;

  /** Of several threads: starting the others is then a small part of the time. */
  private static final int REPEATS = 16;

  private final Peaks peaks;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment big;
  private int piece;

  MachinePeaks(Peaks peaks) {
    this.peaks = peaks;
    this.big = arena.allocate(READ_BYTES, 1 << 21);
    HugePages.request(big);
  }

  /** Fills the memory that is read: pages that were never written are all the same one. */
  void prepare() {
    if (big.get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0) == 0) {
      big.fill((byte) 1);
    }
  }

  /** Arithmetic that a type may use, or reading memory, on so many threads. */
  Seq<Entrant> of(Work work, int threads) {
    return switch (work.measure()) {
      case GFLOPS ->
          Vector.of(Instruction.values())
              .filter(kind -> kind == Instruction.FMA || work.dtype() != DType.FP32)
              .map(kind -> arithmetic(kind, threads))
              .filter(entrant -> entrant.amount() > 0);
      case GBYTES -> Vector.of(reading(threads));
    };
  }

  private Entrant arithmetic(Instruction kind, int threads) {
    int repeats = threads > 1 ? REPEATS : 1;
    return new Entrant(
        kind.label(),
        peaks.flops(kind) * threads * repeats,
        () -> onThreads(threads, part -> repeat(kind, repeats)));
  }

  private void repeat(Instruction kind, int repeats) {
    for (int i = 0; i < repeats; i++) {
      peaks.flops(kind);
    }
  }

  private Entrant reading(int threads) {
    prepare();
    return threads == 1
        ? new Entrant(READ, PIECE, () -> peaks.read(next()))
        : new Entrant(READ, READ_BYTES, () -> onThreads(threads, part -> readShare(part, threads)));
  }

  private MemorySegment next() {
    piece = (int) ((piece + 1) % (READ_BYTES / PIECE));
    return big.asSlice(piece * PIECE, PIECE);
  }

  private void readShare(long part, int threads) {
    long bytes = READ_BYTES / threads;
    peaks.read(big.asSlice(part * bytes, bytes));
  }

  private interface Part {
    void run(long part);
  }

  private static void onThreads(int threads, Part work) {
    Thread[] others = new Thread[threads - 1];
    for (int i = 0; i < others.length; i++) {
      long part = i + 1L;
      others[i] = Thread.ofPlatform().start(() -> work.run(part));
    }
    work.run(0);
    for (Thread other : others) {
      try {
        other.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}

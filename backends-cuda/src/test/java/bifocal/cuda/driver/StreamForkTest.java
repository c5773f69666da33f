package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.fake.FakeCuda.Launch;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Work beside a stream's is free of the stream's own, and inside what comes before and after. */
final class StreamForkTest {
  private static final int BEFORE = 0;
  private static final int OWN = 1;
  private static final int BESIDE = 2;
  private static final int AFTER = 3;

  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);
  private final CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
  private final CudaLibrary library =
      CudaLibrary.load(context, "attention", FakeCuda.image(90, FakeCuda.kernel("attend", 4)));
  private final Arena arena = Arena.ofConfined();
  private final PreparedLaunch attend =
      library.kernel("attend").prepare(arena, LaunchShape.of(32, 0));

  @AfterEach
  void everythingIsClosed() {
    arena.close();
    library.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private void attend(CudaStream on) {
    attend.launch(on, 1, 1, 1);
  }

  private void forked() {
    attend(stream);
    try (StreamFork fork = stream.fork()) {
      attend(stream);
      attend(fork.queue());
    }
    attend(stream);
  }

  private void requireOrder() {
    assertThat(fake.ordered(BEFORE, OWN)).isTrue();
    assertThat(fake.ordered(BEFORE, BESIDE)).isTrue();
    assertThat(fake.ordered(OWN, BESIDE) || fake.ordered(BESIDE, OWN)).isFalse();
    assertThat(fake.ordered(OWN, AFTER)).isTrue();
    assertThat(fake.ordered(BESIDE, AFTER)).isTrue();
  }

  @Test
  void workBesideAStreamComesAfterWhatWasThereAndBeforeWhatFollows() {
    forked();

    requireOrder();
  }

  @Test
  void aStreamHasOneQueueBesideItWhateverItsForks() {
    stream.prepareFork();
    int prepared = fake.calls().size();

    forked();
    forked();

    assertThat(fake.calls().drop(prepared)).doesNotContain("cuStreamCreate", "cuEventCreate");
    assertThat(fake.live().get("stream").get()).isEqualTo(2);
    assertThat(fake.live().get("event").get()).isEqualTo(2);
    assertThat(fake.ordered(AFTER, 4 + BESIDE)).isTrue();
  }

  @Test
  void aForkInsideAForkIsJoinedToo() {
    try (StreamFork outer = stream.fork()) {
      attend(outer.queue());
      try (StreamFork inner = stream.fork()) {
        attend(inner.queue());
      }
      attend(stream);
    }
    attend(stream);

    assertThat(fake.ordered(0, 3)).isTrue();
    assertThat(fake.ordered(1, 2)).isTrue();
    assertThat(fake.ordered(1, 3)).isTrue();
  }

  @Test
  void whileAStreamRecordsTheWorkBesideItIsABranchOfItsGraph() {
    stream.prepareFork();
    try (CapturedGraph graph = new CudaGraphCapture().capture(launch, this::forked)) {
      assertThat(fake.launches()).isEmpty();

      graph.replay(launch);

      assertThat(fake.launches().map(Launch::replayed)).containsExactly(true, true, true, true);
      requireOrder();
    }
    forked();
    assertThat(fake.launches().drop(4).map(Launch::replayed)).containsOnly(false);
  }

  @Test
  void aBranchThatNobodyJoinsIsNoGraph() {
    stream.prepareFork();

    assertThatThrownBy(
            () -> new CudaGraphCapture().capture(launch, () -> attend(stream.fork().queue())))
        .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuStreamEndCapture", "904"));
  }

  @Test
  void workIsJoinedWhenALaunchIsRefused() {
    assertThatThrownBy(
            () -> {
              try (StreamFork fork = stream.fork()) {
                attend(fork.queue());
                attend.launch(stream, 0, 1, 1);
              }
            })
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "grid"));
    attend(stream);

    assertThat(fake.ordered(0, 1)).isTrue();
  }

  @Test
  void theHostWaitsWhereTheStreamCannot() {
    StreamFork fork = stream.fork();
    attend(fork.queue());
    fake.fail("cuStreamWaitEvent", 1, 1);

    assertThatThrownBy(fork::close)
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("cuStreamWaitEvent");
    assertThat(fake.calls().last()).isEqualTo("cuStreamSynchronize");
  }

  @Test
  void aClosedStreamForksNoMore() {
    CudaStream gone = CudaStream.create(context);
    gone.fork().close();
    gone.close();

    assertThatThrownBy(gone::fork).satisfies(refused(ErrorCode.CLOSED, "stream"));
    assertThatThrownBy(gone::prepareFork).satisfies(refused(ErrorCode.CLOSED, "stream"));
  }

  @Test
  void whatWasMadeBesideTheHostsStreamIsGivenBackAndTheStreamStays() {
    try (CudaStream theirs = CudaStream.create(context)) {
      CudaStream adopted = CudaStream.adopt(context, theirs.handle());
      adopted.fork().close();

      adopted.close();

      theirs.synchronize();
      assertThat(context.open()).doesNotContain("event");
    }
  }
}

package bifocal.cpu.fault;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvScales;
import bifocal.core.engine.GroupStep;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.workspace.Workspace;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * What a host may do wrong with native memory, each in a JVM of its own: a mistake of ours would
 * end it. A scene that ends as it should prints its name, and the JVM's exit status is 0.
 */
enum FaultScene {
  KERNELS_CHOSEN {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        CommonAttentionMetadata batch = engine.admit(33, 1);
        engine.run(SmallEngine.launch(), batch);
        require(engine.isRight(batch));
      }
    }
  },
  OPENED_AND_CLOSED_AT_ONCE {
    @Override
    void play() {
      for (int i = 0; i < 50; i++) {
        engine().close();
      }
    }
  },
  CLOSED_TWICE {
    @Override
    void play() {
      SmallEngine engine = engine();
      engine.run(SmallEngine.launch(), engine.admit(20, 1));
      engine.close();
      engine.close();
    }
  },
  EMPTY_BATCHES {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        engine.run(SmallEngine.launch(), engine.admit());
        engine.run(SmallEngine.launch(), engine.admit(0, 0));
        CommonAttentionMetadata batch = engine.admit(5, 0);
        engine.run(SmallEngine.launch(), batch);
        require(engine.isRight(batch));
      }
    }
  },
  USED_AFTER_THE_POOL_WAS_CLOSED {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        usedAfter(engine, e -> e.pool.close());
      }
    }
  },
  USED_AFTER_THE_RUNTIME_WAS_CLOSED {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        usedAfter(engine, e -> e.runtime.close());
      }
    }
  },
  USED_AFTER_THE_TENSORS_WERE_RELEASED {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        usedAfter(engine, e -> e.tensors.close());
      }
    }
  },
  USED_AFTER_THE_WORKSPACE_WAS_RELEASED {
    @Override
    void play() {
      try (SmallEngine engine = engine()) {
        usedAfter(engine, e -> e.workspaceMemory.close());
      }
    }
  },
  POOL_CLOSED_WHILE_STEPS_RUN {
    @Override
    void play() throws InterruptedException {
      closedWhileStepsRun(engine -> engine.pool.close());
    }
  },
  RUNTIME_CLOSED_WHILE_STEPS_RUN {
    @Override
    void play() throws InterruptedException {
      closedWhileStepsRun(engine -> engine.runtime.close());
    }
  },
  TENSORS_RELEASED_WHILE_STEPS_RUN {
    @Override
    void play() throws InterruptedException {
      closedWhileStepsRun(engine -> engine.tensors.close());
    }
  },
  WORKSPACE_RELEASED_WHILE_STEPS_RUN {
    @Override
    void play() throws InterruptedException {
      closedWhileStepsRun(engine -> engine.workspaceMemory.close());
    }
  },
  STEP_CLOSED_WHILE_IT_RUNS {
    @Override
    void play() throws InterruptedException {
      stepClosedWhileItRuns();
    }
  },
  TWO_THREADS_IN_ONE_LAYER {
    @Override
    void play() throws InterruptedException {
      twoThreads();
    }
  };

  private static final int ROUNDS = Integer.getInteger("bifocal.fault.rounds", 8);

  abstract void play() throws InterruptedException;

  public static void main(String[] arguments) throws InterruptedException {
    FaultScene scene = valueOf(arguments[0]);
    try {
      scene.play();
      System.out.println("played " + scene + " on " + CpuRuntime.ofThisJvm().kernels().name());
    } catch (BifocalException refused) {
      System.out.println("refused " + refused.code() + " " + refused.getMessage());
    }
  }

  /** Lets the closing thread in between two calls once it has been refused often enough. */
  private static final class Door {
    private static final int PATIENCE = 1_000;

    private final AtomicInteger refusals = new AtomicInteger();

    void refused() {
      refusals.incrementAndGet();
      Thread.onSpinWait();
    }

    void passed() {
      if (refusals.get() > PATIENCE) {
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  private static AttentionBackend<?> backend() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    return CompositeBackends.createCompositeBackendOrThrow(
        new FlexAttentionBackend(runtime),
        new CpuAttnBackend(runtime),
        new MMPrefixAttentionRouting());
  }

  private static SmallEngine engine() {
    return new SmallEngine(backend(), SmallEngine.LAYER, KvScales.ONE, 60);
  }

  /** A built step meets closed memory in each of its calls, and the next step does, too. */
  private static void usedAfter(SmallEngine engine, Consumer<SmallEngine> close) {
    LaunchContext launch = SmallEngine.launch();
    CommonAttentionMetadata batch = engine.admit(new int[][] {{3, 14}, {}}, 40, 1);
    try (Workspace.Step lease = engine.workspace.openStep()) {
      GroupStep<?> step = engine.runtime.step(new StepContext(launch, lease, 0), batch);
      engine.write(step, 0);
      engine.forward(step, 0);
      close.accept(engine);
      refused(() -> engine.forward(step, 0));
    }
    refused(() -> engine.run(launch, batch));
  }

  private static void refused(Runnable call) {
    try {
      call.run();
    } catch (BifocalException e) {
      require(e.code() == ErrorCode.CLOSED);
      return;
    } catch (IllegalStateException alreadyClosed) {
      throw new AssertionError("not a typed refusal", alreadyClosed);
    }
    throw new AssertionError("not refused");
  }

  /** Another thread closes at any moment, until it is let; the steps end with a typed refusal. */
  private static void closedWhileStepsRun(Consumer<SmallEngine> close) throws InterruptedException {
    long seed = Long.getLong("bifocal.seed", 7);
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int round = 0; round < ROUNDS; round++) {
      SmallEngine engine = engine();
      AtomicReference<Throwable> end = new AtomicReference<>();
      Door door = new Door();
      CommonAttentionMetadata batch = engine.admit(new int[][] {{3, 14}, {}, {}}, 250, 1, 90);
      Thread steps =
          Thread.ofPlatform()
              .start(
                  () -> {
                    LaunchContext launch = SmallEngine.launch();
                    try {
                      while (true) {
                        engine.run(launch, batch);
                        door.passed();
                      }
                    } catch (Throwable thrown) {
                      end.set(thrown);
                    }
                  });
      pause(random.nextInt(4_000_000));
      closeWhenLet(engine, close, door);
      steps.join();
      require(end.get() instanceof BifocalException e && e.code() == ErrorCode.CLOSED, end.get());
      engine.close();
    }
  }

  private static void closeWhenLet(SmallEngine engine, Consumer<SmallEngine> close, Door door) {
    while (true) {
      try {
        close.accept(engine);
        return;
      } catch (BifocalException refused) {
        require(refused.code() == ErrorCode.IN_USE, refused);
      } catch (IllegalStateException heldByTheJvm) {
        require(heldByTheJvm.getMessage().contains("acquired"), heldByTheJvm);
      }
      door.refused();
    }
  }

  /** Another thread closes the step as soon as it may, and builds another one in its memory. */
  private static void stepClosedWhileItRuns() throws InterruptedException {
    try (SmallEngine engine = engine()) {
      CommonAttentionMetadata batch = engine.admit(new int[][] {{3, 14}, {}, {}}, 250, 1, 90);
      for (int round = 0; round < 4 * ROUNDS; round++) {
        Door door = new Door();
        LaunchContext launch = SmallEngine.launch();
        Workspace.Step lease = engine.workspace.openStep();
        GroupStep<?> step = engine.runtime.step(new StepContext(launch, lease, 0), batch);
        engine.write(step, 0);
        Thread closer = Thread.ofPlatform().start(() -> closeAndBuild(engine, lease, batch, door));
        try {
          while (true) {
            engine.forward(step, 0);
            door.passed();
          }
        } catch (BifocalException over) {
          require(over.code() == ErrorCode.CLOSED, over);
        }
        closer.join();
      }
    }
  }

  private static void closeAndBuild(
      SmallEngine engine, Workspace.Step lease, CommonAttentionMetadata batch, Door door) {
    while (true) {
      try {
        lease.close();
        break;
      } catch (BifocalException refused) {
        require(refused.code() == ErrorCode.IN_USE, refused);
        door.refused();
      }
    }
    try (Workspace.Step next = engine.workspace.openStep()) {
      engine.runtime.step(new StepContext(SmallEngine.launch(), next, 0), batch);
    }
  }

  /** Of two threads with contexts of their own one runs at a time, the other is told. */
  private static void twoThreads() throws InterruptedException {
    try (SmallEngine engine = engine()) {
      CommonAttentionMetadata batch = engine.admit(250, 1, 90);
      LaunchContext launch = SmallEngine.launch();
      try (Workspace.Step lease = engine.workspace.openStep()) {
        GroupStep<?> mine = engine.runtime.step(new StepContext(launch, lease, 0), batch);
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread other =
            Thread.ofPlatform()
                .start(
                    () -> {
                      try {
                        engine.forward(mine, 0);
                      } catch (Throwable thrown) {
                        end.set(thrown);
                      }
                    });
        engine.write(mine, 0);
        engine.forward(mine, 0);
        other.join();
        require(
            end.get() instanceof BifocalException e && e.code() == ErrorCode.WRONG_THREAD,
            end.get());
      }
    }
  }

  private static void pause(int nanos) {
    long until = System.nanoTime() + nanos;
    while (System.nanoTime() < until) {
      Thread.onSpinWait();
    }
  }

  private static void require(boolean right) {
    if (!right) {
      throw new AssertionError("not as it should be");
    }
  }

  private static void require(boolean right, Throwable seen) {
    if (!right) {
      throw new AssertionError("not a typed refusal", seen);
    }
  }
}

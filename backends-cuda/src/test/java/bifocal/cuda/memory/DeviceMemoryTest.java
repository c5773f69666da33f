package bifocal.cuda.memory;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.cache.BlockLease;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.DeviceRange;
import bifocal.cuda.fake.FakeCuda;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Device memory is estimated before it is asked for, and given back once. */
final class DeviceMemoryTest {
  private static final long MIB = 1 << 20;
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 16, 2, 8, 8, KvScales.ONE);

  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);

  @AfterEach
  void everythingIsClosed() {
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private byte[] read(MemorySegment device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(device.byteSize());
      stream.copyToHost(device, host);
      stream.synchronize();
      return host.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  @Test
  void blocksAreNamedSizedAndAligned() {
    try (CudaMemory memory = CudaMemory.unlimited(context);
        DeviceBlock first = memory.acquire("cache", 1000);
        DeviceBlock second = memory.acquire("workspace", 1)) {
      assertThat(first.name()).isEqualTo("cache");
      assertThat(first.bytes()).isEqualTo(1000);
      assertThat(first.address() % 256).isZero();
      assertThat(second.address() % 256).isZero();
      assertThat(memory.used()).isEqualTo(1024 + 256);
    }
  }

  @Test
  void aBlockGivesItsMemoryBackOnceAndEndsItsViews() {
    try (CudaMemory memory = new CudaMemory(context, MIB)) {
      DeviceBlock block = memory.acquire("cache", MIB);
      TensorView view = TensorView.of(block.segment(), DType.UINT8, context.place(), MIB);
      assertThat(memory.available()).isZero();

      block.close();
      block.close();

      assertThat(memory.available()).isEqualTo(MIB);
      assertThat(view.data().scope().isAlive()).isFalse();
      assertThat(fake.calls().count("cuMemFree_v2"::equals)).isEqualTo(1);
    }
  }

  @Test
  void whatTheLimitDoesNotCoverIsRefusedBeforeTheDriverIsAsked() {
    try (CudaMemory memory = new CudaMemory(context, MIB);
        DeviceBlock block = memory.acquire("cache", MIB - 256)) {
      assertThatThrownBy(() -> memory.acquire("workspace", 257))
          .satisfies(
              refused(
                  ErrorCode.DEVICE_MEMORY_EXHAUSTED,
                  "cuda:0 for workspace",
                  "256 bytes left by the limit",
                  "512 bytes"));
      assertThat(fake.calls().count("cuMemAlloc_v2"::equals)).isEqualTo(1);
      assertThat(memory.used()).isEqualTo(block.bytes());
    }
  }

  @Test
  void whatTheDeviceHasNotFreeIsRefusedBeforeTheDriverIsAsked() {
    fake.devices(1, 9, 0, MIB);
    try (CudaMemory memory = CudaMemory.unlimited(context)) {
      assertThatThrownBy(() -> memory.acquire("cache", MIB + 1))
          .satisfies(refused(ErrorCode.DEVICE_MEMORY_EXHAUSTED, MIB + " bytes left by the device"));
      assertThat(fake.calls()).doesNotContain("cuMemAlloc_v2");
      assertThat(memory.used()).isZero();
    }
  }

  @Test
  void aDriverThatHasLessThanItSaidIsTypedTheSame() {
    try (CudaMemory memory = CudaMemory.unlimited(context)) {
      fake.fail("cuMemAlloc_v2", 1, 2);

      assertThatThrownBy(() -> memory.acquire("cache", 64))
          .satisfies(
              refused(ErrorCode.DEVICE_MEMORY_EXHAUSTED, "cuMemAlloc for cache", "out of memory"));
      assertThat(memory.used()).isZero();
    }
  }

  @Test
  void nothingAndLessThanNothingAreRefused() {
    try (CudaMemory memory = CudaMemory.unlimited(context)) {
      assertThatThrownBy(() -> memory.acquire("cache", 0))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, "bytes of cache"));
      assertThatThrownBy(() -> memory.acquire("cache", Long.MAX_VALUE))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER));
    }
  }

  @Test
  void memoryInUseIsNotClosedAndNamesItsBlocks() {
    CudaMemory memory = CudaMemory.unlimited(context);
    DeviceBlock cache = memory.acquire("cache", 64);
    DeviceBlock workspace = memory.acquire("workspace", 64);

    assertThatThrownBy(memory::close).satisfies(refused(ErrorCode.IN_USE, "cache, workspace"));

    cache.close();
    workspace.close();
    memory.close();
    assertThatThrownBy(() -> memory.acquire("cache", 64)).satisfies(refused(ErrorCode.CLOSED));
  }

  @Test
  void theTwinNamesABlockThatWasGivenBackTwice() {
    try (TrackingMemory memory = new TrackingMemory(CudaMemory.unlimited(context))) {
      DeviceBlock block = memory.acquire("cache", 64);
      block.close();

      assertThatThrownBy(block::close)
          .satisfies(refused(ErrorCode.CLOSED, "given back twice", "cache"));
    }
  }

  @Test
  void theTwinNamesEveryLeakAndWhereItWasAcquired() {
    TrackingMemory memory = new TrackingMemory(CudaMemory.unlimited(context));
    memory.acquire("cache", 64).close();
    memory.acquire("workspace", 64);
    memory.acquire("staging", 64);

    assertThatThrownBy(memory::close)
        .satisfies(refused(ErrorCode.IN_USE, "never given back", "workspace, staging"))
        .satisfies(
            thrown ->
                assertThat(thrown.getSuppressed()[0])
                    .hasMessage("workspace was acquired here")
                    .hasStackTraceContaining("DeviceMemoryTest"));
    assertThat(fake.live().get("memory")).isEmpty();
  }

  @Test
  void pinnedMemoryIsTheHostsUntilItIsFreed() {
    PinnedBlock block = PinnedBlock.allocate(context, "pinned", 64);
    MemorySegment segment = block.segment();
    segment.set(ValueLayout.JAVA_INT, 60, 7);
    assertThat(segment.get(ValueLayout.JAVA_INT, 60)).isEqualTo(7);
    assertThat(segment.byteSize()).isEqualTo(64);

    block.close();
    block.close();

    assertThat(segment.scope().isAlive()).isFalse();
    assertThat(fake.live().get("host")).isEmpty();
  }

  @Test
  void aPoolOnTheDeviceLeasesBlocksOfZerosAndCopiesThem() {
    KvCachePool.Group group = new KvCachePool.Group("full", Vector.of("layer.0"), SPEC, 4);
    try (CudaMemory memory = CudaMemory.unlimited(context);
        DeviceBlock block = memory.acquire("KV cache", KvCachePool.bytes(Vector.of(group)))) {
      KvCachePool pool =
          KvCachePool.over(
              block.segment(), context.place(), new StreamBlockMemory(stream), Vector.of(group));
      KvBlocks blocks = pool.group("full");
      KvCacheView view = blocks.view("layer.0");
      BlockLease lease = blocks.lease(1);
      MemorySegment record =
          view.memory().asSlice(view.blockOffset(lease.block(0)), SPEC.blockBytes());
      assertThat(read(record)).containsOnly(0);

      stream.fill(record, (byte) 0x3C);
      BlockLease second = lease.retain();
      int own = second.writable(0);
      assertThat(read(view.memory().asSlice(view.blockOffset(own), SPEC.blockBytes())))
          .containsOnly(0x3C);
      assertThatThrownBy(() -> view.tokens(SPEC.layout()))
          .satisfies(refused(ErrorCode.DEVICE_MISMATCH));
      pool.close();
    }
  }

  @Test
  void blocksAreLeasedOnAThreadThatNeverSawTheContext() throws InterruptedException {
    KvCachePool.Group group = new KvCachePool.Group("full", Vector.of("layer.0"), SPEC, 4);
    try (CudaMemory memory = CudaMemory.unlimited(context);
        DeviceBlock block = memory.acquire("KV cache", KvCachePool.bytes(Vector.of(group)));
        KvCachePool pool =
            KvCachePool.over(
                block.segment(),
                context.place(),
                new StreamBlockMemory(stream),
                Vector.of(group))) {
      List<Integer> leased = new ArrayList<>();
      Thread scheduler =
          Thread.ofPlatform().start(() -> leased.add(pool.group("full").lease(2).size()));
      scheduler.join();

      assertThat(leased).containsExactly(2);
    }
  }

  @Test
  void aCacheOfTheHostsOwnMemoryIsAViewOfItsAddresses() {
    try (CudaMemory memory = CudaMemory.unlimited(context);
        DeviceBlock theirs = memory.acquire("the host's", 4 * SPEC.blockBytes() + 512)) {
      KvCacheView view;
      try (DeviceRange range = context.range(theirs.address() + 512, 4 * SPEC.blockBytes())) {
        view = KvCacheView.wrap(range.segment(), SPEC, context.place(), 4, SPEC.blockBytes());
        view.requireOpen();
        assertThat(view.memory().address()).isEqualTo(theirs.address() + 512);
      }
      assertThatThrownBy(view::requireOpen).satisfies(refused(ErrorCode.CLOSED));
    }
  }

  @Test
  void aWorkspaceOnTheDeviceZeroesItsRegionsThere() {
    WorkspacePlan plan =
        WorkspacePlan.of(256, new WorkspaceRegion("counters", 512, WorkspaceRegion.State.ZEROED));
    try (CudaMemory memory = CudaMemory.unlimited(context);
        DeviceBlock block = memory.acquire("workspace", plan.totalBytes(1));
        Workspace workspace =
            Workspace.wrap(block.segment(), plan, 1, new StreamBlockMemory(stream));
        Workspace.Step step = workspace.openStep(stream.handle())) {
      assertThat(read(step.region("counters"))).containsOnly(0);
      assertThat(step.lease(64, 64).address()).isBetween(block.address(), block.address() + 1024);
    }
  }
}

package bifocal.cuda.memory;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaPool;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.DeviceAllocation;
import bifocal.cuda.fake.FakeCuda;
import io.vavr.collection.Seq;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory of a pool is handed out again in the order of a stream. */
final class PooledMemoryTest {
  private static final long MIB = 1 << 20;

  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);

  @AfterEach
  void everythingIsClosed() {
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private Seq<String> callsFrom(int first) {
    return fake.calls().drop(first).remove("cuCtxSetCurrent");
  }

  @Test
  void givingABlockBackWaitsForNothing() {
    try (CudaMemory memory = CudaMemory.pooled(stream, MIB)) {
      DeviceBlock block = memory.acquire("cache", 4096);
      fake.busy(true);
      int before = fake.calls().size();
      block.close();

      assertThat(fake.calls().drop(before)).containsExactly("cuCtxSetCurrent", "cuMemFreeAsync");
      assertThat(fake.early()).isZero();
    }
  }

  @Test
  void whatAPoolKeepsIsAvailableToItsNextBlock() {
    fake.devices(1, 9, 0, MIB);
    try (CudaMemory memory = CudaMemory.pooled(stream, Long.MAX_VALUE)) {
      memory.acquire("first", MIB).close();
      assertThat(context.freeBytes()).as("free by the driver").isZero();
      assertThat(memory.available()).isEqualTo(MIB);

      memory.acquire("second", MIB).close();
    }
    assertThat(context.freeBytes()).as("free once the memory was closed").isEqualTo(MIB);
  }

  @Test
  void whatNeitherPoolNorDeviceHasIsRefusedBeforeTheDriverIsAsked() {
    fake.devices(1, 9, 0, MIB);
    try (CudaMemory memory = CudaMemory.pooled(stream, Long.MAX_VALUE);
        DeviceBlock block = memory.acquire("cache", MIB / 2)) {
      assertThatThrownBy(() -> memory.acquire("workspace", MIB / 2 + 1))
          .satisfies(
              refused(
                  ErrorCode.DEVICE_MEMORY_EXHAUSTED, "for workspace", MIB / 2 + " bytes left by"));
      assertThat(fake.calls().count("cuMemAllocFromPoolAsync"::equals)).isEqualTo(1);
      assertThat(memory.used()).isEqualTo(block.bytes());
    }
  }

  @Test
  void blocksKeepAPoolOpen() {
    try (CudaPool pool = CudaPool.create(context)) {
      try (DeviceAllocation block = pool.allocate(stream, "cache", 512)) {
        assertThat(pool.usedBytes()).isEqualTo(block.segment().byteSize());
        assertThatThrownBy(pool::close).satisfies(refused(ErrorCode.IN_USE, "1 allocations"));
      }
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.reservedBytes()).isEqualTo(512);
    }
  }

  @Test
  void aBlockOutlivesItsStreamAndIsThenWaitedFor() {
    try (CudaPool pool = CudaPool.create(context)) {
      CudaStream gone = CudaStream.create(context);
      DeviceAllocation block = pool.allocate(gone, "cache", 512);
      gone.close();
      int before = fake.calls().size();
      block.close();

      assertThat(callsFrom(before)).containsExactly("cuCtxSynchronize", "cuMemFree_v2");
    }
  }

  @Test
  void aDeviceWithoutPoolsIsRefused() {
    stream.close();
    context.close();
    fake.reset();
    fake.pools(false);
    try (CudaContext other = CudaContext.primary(fake.driver(), 0)) {
      assertThatThrownBy(() -> CudaPool.create(other))
          .satisfies(refused(ErrorCode.UNSUPPORTED, "memory pool of cuda:0"));
    }
  }
}

package bifocal.core.observe;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.Batches;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.tensor.DType;
import com.sun.management.ThreadMXBean;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JfrObserverTest {
  private static final LayerGroup GROUP =
      LayerGroup.of(
          "sliding", AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL));
  private static final CommonAttentionMetadata BATCH = Batches.prefills(30, 10);
  private static final Route SPLIT =
      new Route.SplitByRequest(
          RequestRoutes.builder(2)
              .set(0, Child.A, RouteReason.NEEDS_FUTURE_KEY, 3, 9)
              .set(1, Child.B, RouteReason.NO_IMAGE_QUERY)
              .build(),
          Option.none());
  private static final List<String> NAMES =
      List.of("bifocal.Selection", "bifocal.Route", "bifocal.Forward");
  private static final BackendName BACKEND = new BackendName("CPU_ATTN");

  private final JfrObserver observer = new JfrObserver();

  @Test
  void aRecordingHoldsSelectionsRoutesAndForwards(@TempDir Path folder) throws IOException {
    List<RecordedEvent> events = record(folder, NAMES.toArray(String[]::new));
    assertThat(events)
        .extracting(e -> e.getEventType().getName())
        .containsExactly("bifocal.Selection", "bifocal.Route", "bifocal.Forward");
    RecordedEvent selection = events.get(0);
    assertThat(selection.getString("backend")).isEqualTo("CPU_ATTN");
    assertThat(selection.getString("source")).isEqualTo("priority");
    assertThat(selection.getString("device")).isEqualTo("cpu amx");
    assertThat(selection.getInt("headSize")).isEqualTo(64);
    assertThat(selection.getString("considered"))
        .isEqualTo("FLEX_ATTENTION: head_size not supported; CPU_ATTN ok");
    RecordedEvent route = events.get(1);
    assertThat(route.getString("group")).isEqualTo("sliding");
    assertThat(route.getString("route")).isEqualTo("SPLIT");
    assertThat(route.getInt("requests")).isEqualTo(2);
    assertThat(route.getInt("queryTokens")).isEqualTo(40);
    assertThat(route.getInt("toChildA")).isEqualTo(1);
    assertThat(route.getInt("toChildB")).isEqualTo(1);
    assertThat(route.getFloat("childBShare")).isEqualTo(0.25f);
    assertThat(route.getDuration("routing")).hasNanos(1_700);
    RecordedEvent forward = events.get(2);
    assertThat(forward.getString("backend")).isEqualTo("CPU_ATTN");
    assertThat(forward.getString("kernels")).isEqualTo("some kernel");
    assertThat(forward.getDuration("time")).hasNanos(25_000);
    assertThat(events).allSatisfy(e -> assertThat(e.getStackTrace()).isNull());
  }

  @Test
  void whatARecordingLeavesOutIsNotWritten(@TempDir Path folder) throws IOException {
    assertThat(record(folder, "bifocal.Route"))
        .extracting(e -> e.getEventType().getName())
        .containsExactly("bifocal.Route");
  }

  @Test
  void itIsEnabledOnlyWhileARecordingWantsIt() {
    assertThat(observer.enabled()).isFalse();
    try (Recording recording = new Recording()) {
      NAMES.forEach(recording::disable);
      recording.start();
      assertThat(observer.enabled()).isFalse();
    }
    for (String name : NAMES) {
      try (Recording recording = new Recording()) {
        NAMES.forEach(recording::disable);
        recording.enable(name);
        recording.start();
        assertThat(observer.enabled()).as(name).isTrue();
      }
    }
    assertThat(observer.enabled()).isFalse();
  }

  @Test
  void askingWhetherItIsEnabledMakesNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int enabled = 0;
    for (int i = 0; i < 20_000; i++) {
      enabled += observer.enabled() ? 1 : 0;
    }
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < 20_000; i++) {
      enabled += observer.enabled() ? 1 : 0;
    }
    long allocated = threads.getCurrentThreadAllocatedBytes() - before;
    assertThat(enabled).isZero();
    assertThat(allocated).isLessThan(2_000);
  }

  private List<RecordedEvent> record(Path folder, String... names) throws IOException {
    Path file = folder.resolve("events.jfr");
    try (Recording recording = new Recording()) {
      NAMES.forEach(recording::disable);
      List.of(names).forEach(recording::enable);
      recording.start();
      observer.selected(
          AttentionRequest.of(
              GROUP.spec(), new DeviceProfile.Cpu(DeviceProfile.CpuIsa.AMX, HashSet.empty(), true)),
          BACKEND,
          "priority",
          Vector.of("FLEX_ATTENTION: head_size not supported", "CPU_ATTN ok"));
      observer.routed(GROUP, BATCH, SPLIT, 1_700);
      observer.forwarded(BACKEND, GROUP, 2, 40, "some kernel", 25_000);
      recording.stop();
      recording.dump(file);
    }
    return RecordingFile.readAllEvents(file).stream()
        .filter(e -> e.getEventType().getName().startsWith("bifocal."))
        .sorted(Comparator.comparing(RecordedEvent::getStartTime))
        .toList();
  }
}

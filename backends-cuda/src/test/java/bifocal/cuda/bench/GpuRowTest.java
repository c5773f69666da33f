package bifocal.cuda.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.triton.TritonHost;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.vavr.collection.LinkedHashMap;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the benchmark of GPUs counts, and what its rows say. */
class GpuRowTest {
  @Test
  void causalPairsAreHalfASquare() {
    assertThat(GpuWork.prefill(4, 2, 64, 3, 100).pairs()).isEqualTo(3 * 100 * 101 / 2);
  }

  @Test
  void windowsAndImagesAreCountedQueryByQuery() {
    GpuWork work = GpuWork.prefill(4, 2, 64, 1, 2048).withWindow(1024).withImages();
    long pairs = 0;
    for (int query = 0; query < 2048; query++) {
      for (int key = 0; key < 2048; key++) {
        boolean image = false;
        for (int i = 0; i < work.images().size(); i += 2) {
          int first = work.images().get(i);
          int last = work.images().get(i + 1);
          image |= first <= query && query <= last && first <= key && key <= last;
        }
        pairs += query - key < 1024 && (key <= query || image) ? 1 : 0;
      }
    }

    assertThat(work.pairs()).isEqualTo(pairs);
  }

  @Test
  void chunksCountTheImageOfTheLastSequenceAlone() {
    GpuWork work = GpuWork.chunks(4, 2, 64, 3, 1024);
    GpuWork text = work.withoutImages();
    int imageQueries = 256;

    assertThat(work.tokens()).isEqualTo(3 * 512);
    assertThat(work.images(0)).isEmpty();
    assertThat(work.images(2)).hasSize(2);
    assertThat(work.pairs() - text.pairs()).isEqualTo(imageQueries * (imageQueries - 1) / 2);
  }

  @Test
  void decodeCountsEveryKeyAndValueOnce() {
    GpuWork wide = GpuWork.decode(32, 8, 128, 64, 4096, KvCacheDtype.AUTO);
    GpuWork narrow = GpuWork.decode(32, 8, 128, 64, 4096, KvCacheDtype.FP8_E4M3);

    assertThat(wide.cacheBytes()).isEqualTo(1L << 30);
    assertThat(narrow.cacheBytes()).isEqualTo(1L << 29);
    assertThat(wide.speed(0.25)).isCloseTo(4.295, within(1e-3));
  }

  @Test
  void titlesAreUnique() {
    assertThat(GpuWork.all().appendAll(GpuWork.mixed()).map(GpuWork::title))
        .doesNotHaveDuplicates();
  }

  @Test
  void rowComparesWithTheFastestPeer() {
    GpuWork work = GpuWork.prefill(32, 8, 128, 8, 1024);
    GpuRow row = new GpuRow(work, "OURS", 0.2, 0.001, LinkedHashMap.of("slow", 0.4, "fast", 0.1));

    assertThat(row.ratio().get()).isCloseTo(0.5, within(1e-9));
    assertThat(row.json()).containsKeys("work", "block_size", "ours", "peers", "ratio");
    assertThat(new GpuRow(work, "OURS", 0.2, 0.001, LinkedHashMap.empty()).json())
        .doesNotContainKey("ratio");
  }

  @Test
  void peersAreReadByWorkAndName() throws JsonProcessingException {
    GpuPeers peers =
        GpuPeers.read(
            new ObjectMapper()
                .readTree(
                    """
                    {"versions": {"torch": "2"}, "rows": [
                      {"work": "causal prefill (32,8,128) 8x1024", "kernel": "a", "ms": 1.5},
                      {"work": "causal prefill (32,8,128) 8x1024", "kernel": "b", "ms": 2}]}\
                    """));

    assertThat(peers.of(GpuWork.prefill(32, 8, 128, 8, 1024)).toJavaMap())
        .containsEntry("a", 1.5)
        .containsEntry("b", 2.0);
    assertThat(peers.versions().get("torch").get()).isEqualTo("2");
  }

  @Test
  void peersThatAreNotThereAreSaid(@TempDir Path folder) {
    assertThat(GpuPeers.measure(Option.none(), true, line -> {}).note()).contains("no folder");
    assertThat(GpuPeers.measure(Option.some(folder), true, line -> {}).note())
        .contains(folder.resolve(GpuPeers.SCRIPT).toString());
  }

  @Test
  void worksAreThoseOfThePeersScript() throws IOException {
    String script = Files.readString(Path.of("..", "kernels", "triton", "bench_kernels.py"));

    assertThat(script).contains("((200, 455), (600, 855), (1100, 1355), (1600, 1855))");
    assertThat(GpuWork.all().map(GpuWork::images).filter(images -> images.nonEmpty()).head())
        .containsExactly(200, 455, 600, 855, 1100, 1355, 1600, 1855);
  }

  @Test
  void withoutADeviceTheReasonIsThrown() {
    BifocalException why =
        BifocalException.of(ErrorCode.NATIVE_MISSING, "the CUDA driver", "none", "one");

    assertThatThrownBy(
            () ->
                new CudaBenchmarkSuite(TritonHost.without(why))
                    .run(new BenchmarkRequest(true, Option.none(), Option.none(), line -> {})))
        .isSameAs(why);
  }
}

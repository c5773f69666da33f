package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.cpu.attention.Scene.Request;
import bifocal.cpu.attention.Scene.Result;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.kernel.JavaKernels;
import bifocal.cpu.kernel.ScalarTileMath;
import bifocal.cpu.kernel.TileMath;
import bifocal.cpu.thread.CpuThreads;
import bifocal.cpu.vector.VectorTileMath;
import java.lang.reflect.Proxy;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Few rows read packed keys and values as they lie; many unpack them first. Both are one sum. */
final class PairPathTest {
  static Stream<TileMath> maths() {
    return Stream.of(new VectorTileMath(), new ScalarTileMath());
  }

  @ParameterizedTest
  @MethodSource("maths")
  void packedAndUnpackedElementsGiveTheSameBits(TileMath packed) {
    assertThat(packed.readsPairs(KernelType.BFLOAT16, 1)).isTrue();
    TileMath unpacked =
        (TileMath)
            Proxy.newProxyInstance(
                TileMath.class.getClassLoader(),
                new Class<?>[] {TileMath.class},
                (proxy, method, arguments) ->
                    method.getName().equals("readsPairs")
                        ? false
                        : method.invoke(packed, arguments));
    for (int heads : new int[] {1, 2, 3, 4}) {
      for (int headSize : new int[] {64, 80}) {
        for (int window : new int[] {7, 8, 1000}) {
          AttentionLayerSpec.Dense layer =
              AttentionLayerSpec.Dense.decoder(
                  heads, 1, headSize, DType.BF16, AttentionMask.CAUSAL.withWindow(window));
          assertThat(outputs(packed, layer))
              .as("%d rows of %d, window %d", heads, headSize, window)
              .isEqualTo(outputs(unpacked, layer));
        }
      }
    }
  }

  private static float[] outputs(TileMath math, AttentionLayerSpec.Dense layer) {
    CpuRuntime runtime = new CpuRuntime(new JavaKernels(math), CpuThreads.shared());
    try (Scene scene = new Scene(layer, 16, KvScales.ONE, 9)) {
      Request[] requests = {
        Request.of(1, 1), Request.of(1, 2), Request.of(1, 77), Request.of(1, 600)
      };
      Result result = scene.run(new CpuAttnBackend(runtime), requests);
      float[] outputs = new float[requests.length * layer.numHeads() * layer.headSize()];
      int at = 0;
      for (int token = 0; token < requests.length; token++) {
        for (int head = 0; head < layer.numHeads(); head++) {
          for (int d = 0; d < layer.headSize(); d++) {
            outputs[at++] = result.out(token, head, d);
          }
        }
      }
      return outputs;
    }
  }
}

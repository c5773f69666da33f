package bifocal.cuda.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import io.vavr.collection.HashSet;
import io.vavr.control.Option;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Orders that no layer of the command line asks for, and pages of the indexer's side cache. */
class LatentOrderTest {

  @ParameterizedTest(name = "{0} heads, {1}")
  @CsvSource({
    "unknown, AUTO, FLASHMLA_SPARSE FLASHINFER_MLA_SPARSE",
    "unknown, FP8, FLASHINFER_MLA_SPARSE FLASHMLA_SPARSE",
    "1, AUTO, FLASHINFER_MLA_SPARSE FLASHMLA_SPARSE",
    "16, AUTO, FLASHINFER_MLA_SPARSE FLASHMLA_SPARSE",
    "17, AUTO, FLASHMLA_SPARSE FLASHINFER_MLA_SPARSE",
  })
  void theSparsePairOfBlackwell(String heads, KvCacheDtype cache, String pair) {
    Option<Integer> known =
        heads.equals("unknown") ? Option.none() : Option.some(Integer.valueOf(heads));

    assertThat(LatentOrder.of(10, known, cache, 576).takeRight(2).mkString(" ")).isEqualTo(pair);
  }

  @ParameterizedTest(name = "V4.1, {0}")
  @CsvSource({"9, 64", "10, 128", "12, '64, 128'"})
  void theIndexerOfTheNewestModelHasPagesOfItsOwn(int major, String pages) {
    assertThat(
            DeepSeekV41.indexerPages(
                new DeviceProfile.Cuda(new ComputeCapability(major, 0), HashSet.empty(), true)))
        .hasToString(pages);
  }
}

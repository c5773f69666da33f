package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import bifocal.reference.ReferenceBackend;
import bifocal.reference.ReferenceMetadata;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;

/** C11: a child that writes what the other does not expect is found by the contract of pairs. */
class PairMutantsTest {

  @Test
  void valuesWrittenInAnotherOrderThanTheyAreRead() {
    assertThat(failures(new Reversed())).anyMatch(name -> name.startsWith("REFERENCE reads"));
  }

  @Test
  void oneCacheTypeWrittenWrongIsFoundAmongTheOthers() {
    assertThat(failures(new Reversed(KvCacheDtype.FP8_E5M2)))
        .isNotEmpty()
        .allMatch(name -> name.contains("fp8_e5m2"));
  }

  @Test
  void twoRightOnesPass() {
    assertThat(failures(new Mutant())).isEmpty();
  }

  private static Stream<String> failures(Mutant mutant) {
    KvCachePairContract pair =
        new KvCachePairContract() {
          @Override
          public AttentionBackend<?> backend() {
            return mutant;
          }

          @Override
          public AttentionBackend<?> other() {
            return ReferenceBackend.over(KvLayouts.NHD);
          }
        };
    return pair.writtenByEitherAndReadByEither()
        .filter(PairMutantsTest::fails)
        .map(DynamicTest::getDisplayName);
  }

  private static boolean fails(DynamicTest test) {
    try {
      test.getExecutable().execute();
      return false;
    } catch (Throwable caught) {
      return true;
    }
  }

  /** Writes the elements of each value backwards. */
  private static final class Reversed extends Mutant {
    private final KvCacheDtype[] only;

    Reversed(KvCacheDtype... only) {
      this.only = only;
    }

    @Override
    void writeKv(
        AttentionImpl<ReferenceMetadata> right,
        LaunchContext launch,
        KvInput input,
        KvCacheView cache,
        SlotMapping slots) {
      KvInput.Dense dense = (KvInput.Dense) input;
      boolean wrong = only.length == 0 || only[0] == cache.spec().dtype();
      right.writeKv(
          launch, wrong ? new KvInput.Dense(dense.k(), reversed(dense.v())) : input, cache, slots);
    }

    private static TensorView reversed(TensorView v) {
      HostTensor from = HostTensor.over(v);
      MemorySegment memory = Arena.ofAuto().allocate(v.data().byteSize());
      HostTensor to = HostTensor.over(TensorView.ofHost(memory, v.dtype(), v.shape()));
      for (long token = 0; token < v.size(0); token++) {
        for (long head = 0; head < v.size(1); head++) {
          for (long d = 0; d < v.size(2); d++) {
            to.put(from.at(token, head, v.size(2) - 1 - d), token, head, d);
          }
        }
      }
      return to.view();
    }
  }
}

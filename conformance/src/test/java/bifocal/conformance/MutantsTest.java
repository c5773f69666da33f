package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceMetadata;
import bifocal.reference.ReferenceRow;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.ThrowingConsumer;
import org.opentest4j.TestAbortedException;

/** Each way of being wrong is found by the test that is there for it. */
class MutantsTest {

  @Test
  void windowOfOneKeyTooMany() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return resized(right, 1);
          }
        },
        MaskContract::slidingWindows);
  }

  @Test
  void windowOfOneKeyTooFew() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return resized(right, -1);
          }
        },
        MaskContract::slidingWindows);
  }

  private static Dense resized(Dense layer, int by) {
    return layer
        .mask()
        .window()
        .filter(window -> window + by > 0)
        .map(window -> layer.withMask(layer.mask().withWindow(window + by)))
        .getOrElse(layer);
  }

  @Test
  void softcapIgnored() {
    Mutant mutant =
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return new Dense(
                right.numHeads(),
                right.numKvHeads(),
                right.headSize(),
                right.headSizeV(),
                right.dtype(),
                right.kvCacheDtype(),
                right.type(),
                right.mask(),
                right.scale(),
                Option.none(),
                right.alibi(),
                right.sinks());
          }
        };
    caught(mutant, NumbersContract::softcapAlibiAndSinksAloneAndTogether);
    caughtBy(mutant, NumbersContract::softcapIsAppliedToTheNumbersOfTheCall);
  }

  @Test
  void sinksIgnored() {
    Mutant mutant =
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.withSinks(false);
          }
        };
    caught(mutant, NumbersContract::softcapAlibiAndSinksAloneAndTogether);
    caughtBy(mutant, NumbersContract::sinkTakesItsShareOfTheSoftmax);
    caught(mutant, MaskContract::rowsThatSeeNothing);
  }

  @Test
  void alibiIgnored() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.withAlibi(false);
          }
        },
        NumbersContract::softcapAlibiAndSinksAloneAndTogether);
  }

  @Test
  void scaleIgnored() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.withScale(Math.pow(right.headSize(), -0.5));
          }
        },
        NumbersContract::softcapAlibiAndSinksAloneAndTogether);
  }

  @Test
  void lastTokenOfAPartialBlockForgotten() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            int size = cache.spec().blockSize();
            return at(
                right,
                (request, position) ->
                    position == batch.seqLen(request) - 1 && position % size == 2
                        ? position - 1
                        : position);
          }
        },
        NumbersContract::everyTailOfABlock);
  }

  @Test
  void firstTokenOfABlockReadFromTheBlockBefore() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            int size = cache.spec().blockSize();
            return at(
                right,
                (request, position) ->
                    position > 0 && position % size == 0 ? position - 1 : position);
          }
        },
        SequenceContract::decodesAfterAPrefill);
  }

  @Test
  void keysOfAnotherKvHead() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            return new KeyValues() {
              @Override
              public void readKey(int request, int position, int kvHead, float[] key) {
                right.readKey(request, position, cache.spec().numKvHeads() - 1 - kvHead, key);
              }

              @Override
              public void readValue(int request, int position, int kvHead, float[] value) {
                right.readValue(request, position, kvHead, value);
              }
            };
          }
        },
        NumbersContract::everyGroupOfQueryHeads);
  }

  @Test
  void scaleOfACacheIgnored() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            return new KeyValues() {
              @Override
              public void readKey(int request, int position, int kvHead, float[] key) {
                right.readKey(request, position, kvHead, key);
              }

              @Override
              public void readValue(int request, int position, int kvHead, float[] value) {
                right.readValue(request, position, kvHead, value);
                for (int d = 0; d < value.length; d++) {
                  value[d] /= cache.spec().scales().value(kvHead);
                }
              }
            };
          }
        },
        NumbersContract::scalesOfAQuantisedCache);
  }

  @Test
  void offsetsOfThirtyTwoBits() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            long stride = cache.blockStride();
            int wrapped = (int) (stride / 2);
            if (wrapped != stride / 2) {
              throw new IndexOutOfBoundsException("offset " + wrapped);
            }
            return right;
          }
        },
        CacheContract::offsetsBeyondTwoToTheThirtyOne);
  }

  /** C22, neighbour: the number of a block times its bytes in 32 bits. */
  @Test
  void numbersOfBlocksTimesTheirBytesInThirtyTwoBits() {
    caught(
        new Mutant() {
          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            int last = cache.numBlocks() - 1;
            int wrapped = last * (int) cache.blockStride();
            if (wrapped != last * cache.blockStride()) {
              throw new IndexOutOfBoundsException("offset " + wrapped);
            }
            return right;
          }
        },
        CacheContract::numbersOfBlocksBeyondTwoToTheThirtyOneElements);
  }

  @Test
  void logSumExpInBaseTwo() {
    caught(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return new ReferenceRow(right.at(), right.out(), right.lse() / Math.log(2));
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  /** C19: declared, and left zero. */
  @Test
  void logSumExpLeftZero() {
    caught(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return new ReferenceRow(right.at(), right.out(), 0);
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  /** C19, neighbour: a kernel whose prefill returns it and whose decode does not. */
  @Test
  void logSumExpOfDecodesLeftZero() {
    caught(
        new Mutant() {
          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            for (TensorView lse : output.lse()) {
              for (int r = 0; r < batch.live(); r++) {
                for (int head = 0; batch.queryLen(r) == 1 && head < lse.size(1); head++) {
                  HostTensor.over(lse).put(0f, batch.queryStart(r), head);
                }
              }
            }
          }
        },
        SequenceContract::decodesAfterAPrefill);
  }

  /** C19, neighbour: the tensor stays as the caller left it. */
  @Test
  void logSumExpNeverWritten() {
    caught(
        new Mutant() {
          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            output.lse().forEach(lse -> lse.data().fill((byte) Tensors.POISON));
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void nothingVisibleGivesNaN() {
    caught(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            double[] out = right.out().clone();
            if (right.lse() == Double.NEGATIVE_INFINITY) {
              out[0] = Double.NaN;
            }
            return new ReferenceRow(right.at(), out, right.lse());
          }
        },
        MaskContract::rowsThatSeeNothing);
  }

  @Test
  void nothingVisibleGivesAFiniteLogSumExp() {
    caught(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return new ReferenceRow(right.at(), right.out(), Math.max(right.lse(), -1e30));
          }
        },
        MaskContract::rowsThatSeeNothing);
  }

  @Test
  void maximumThatStartsAtAFiniteNumber() {
    caught(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return right.lse() < -40_000
                ? new ReferenceRow(right.at(), new double[right.out().length], right.lse())
                : right;
          }
        },
        NumbersContract::veryLowLogitsAreAnOrdinarySoftmax);
  }

  @Test
  void overrideTakenForClamp() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.mask().images() == ImageMask.OVERRIDE
                ? right.withMask(right.mask().withImages(ImageMask.CLAMP_PAST))
                : right;
          }
        },
        MaskContract::everyDeclaredImageMask);
  }

  @Test
  void clampOfThePastTakenForClampOfBoth() {
    caught(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.mask().images() == ImageMask.CLAMP_PAST
                ? right.withMask(right.mask().withImages(ImageMask.CLAMP_BOTH))
                : right;
          }
        },
        MaskContract::everyDeclaredImageMask);
  }

  @Test
  void touchingImagesMerged() {
    caught(
        new Mutant() {
          @Override
          CommonAttentionMetadata batch(CommonAttentionMetadata right) {
            return withImages(right, MutantsTest::merged);
          }
        },
        MaskContract::everyDeclaredImageMask);
  }

  private static int[] merged(CommonAttentionMetadata batch, int request) {
    ImageRanges images = batch.images();
    int count = images.count(request);
    int[] bounds = new int[2 * count];
    int kept = 0;
    for (int i = 0; i < count; i++) {
      if (kept > 0 && bounds[2 * kept - 1] + 1 == images.first(request, i)) {
        bounds[2 * kept - 1] = images.last(request, i);
      } else {
        bounds[2 * kept] = images.first(request, i);
        bounds[2 * kept + 1] = images.last(request, i);
        kept++;
      }
    }
    return Arrays.copyOf(bounds, 2 * kept);
  }

  @Test
  void imagePositionsCountedFromTheChunk() {
    caught(
        new Mutant() {
          @Override
          CommonAttentionMetadata batch(CommonAttentionMetadata right) {
            return withImages(
                right,
                (batch, request) -> {
                  int[] bounds = new int[2 * batch.images().count(request)];
                  for (int i = 0; i < bounds.length / 2; i++) {
                    int chunk = batch.firstPosition(request);
                    bounds[2 * i] = Math.max(0, batch.images().first(request, i) - chunk);
                    bounds[2 * i + 1] =
                        Math.max(bounds[2 * i], batch.images().last(request, i) - chunk);
                  }
                  return bounds.length > 2 ? Arrays.copyOf(bounds, 2) : bounds;
                });
          }
        },
        SequenceContract::chunksThatBeginInsideACachedImage);
  }

  @Test
  void imagesSeenByALayerThatKnowsNone() {
    caughtBy(
        new Mutant() {
          @Override
          Dense layer(Dense right) {
            return right.mask().causal() && right.mask().window().isEmpty()
                ? right.withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE))
                : right;
          }
        },
        MaskContract::imagesMeanNothingToALayerWithoutAnImageMask);
  }

  @Test
  void rightWindowOfARunIgnored() {
    caught(
        new Mutant() {
          @Override
          CommonAttentionMetadata batch(CommonAttentionMetadata right) {
            CommonAttentionMetadata.Cut cut = right.cut(right.live());
            for (int r = 0; r < right.live(); r++) {
              cut.run(r, right.firstPosition(r), right.seqLen(r) - 1, 0);
            }
            return right.hasRuns() ? cut.withoutImages() : right;
          }
        },
        MaskContract::runsWithARightWindowOfTheirOwn);
  }

  @Test
  void rowOfNoRequestWritten() {
    Mutant mutant =
        new Mutant() {
          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            HostTensor.over(output.out()).put(0, batch.tokens(), 0, 0);
          }
        };
    caught(mutant, NumbersContract::everyDeclaredTypeOfQueries);
    caughtBy(mutant, SequenceContract::requestsWithoutQueriesWriteNothing);
    caughtBy(mutant, SequenceContract::batchesWithoutRequestsWriteNothing);
  }

  @Test
  void logSumExpOfNoRequestWritten() {
    caught(
        new Mutant() {
          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            output.lse().map(HostTensor::over).forEach(lse -> lse.put(0, batch.tokens(), 0));
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void rowOfARequestForgotten() {
    caught(
        new Mutant() {
          @Override
          CommonAttentionMetadata batch(CommonAttentionMetadata right) {
            CommonAttentionMetadata.Cut cut = right.cut(Math.max(1, right.live()));
            for (int r = 0; r + 1 < right.live(); r++) {
              cut.request(r);
            }
            return cut.withImages();
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void memoryBesideATensorWritten() {
    caught(
        new Mutant() {
          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            MemorySegment out = output.out().data();
            MemorySegment.ofAddress(out.address() + out.byteSize()).reinterpret(1).fill((byte) 0);
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void lastBuiltBatchRemembered() {
    AtomicReference<Option<CommonAttentionMetadata>> last = new AtomicReference<>(Option.none());
    caughtBy(
        new Mutant() {
          @Override
          CommonAttentionMetadata batch(CommonAttentionMetadata right) {
            last.set(Option.some(right));
            return right;
          }

          @Override
          KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
            return KeyValues.cached(cache, last.get().get());
          }
        },
        SequenceContract::severalBatchesAliveAtOnce);
  }

  @Test
  void resultsThatDependOnTheNumberOfRuns() {
    int[] runs = {0};
    caughtBy(
        new Mutant() {
          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            double[] out = right.out().clone();
            out[0] += 1e-6 * runs[0]++;
            return new ReferenceRow(right.at(), out, right.lse());
          }
        },
        SequenceContract::theSameStepTwiceGivesTheSameBits);
  }

  @Test
  void zeroedRegionNotRestored() {
    caught(
        new Mutant() {
          private Option<MemorySegment> region = Option.none();

          @Override
          public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
            return WorkspacePlan.of(
                0, new WorkspaceRegion("counters", 64, WorkspaceRegion.State.ZEROED));
          }

          @Override
          public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
              LayerGroup group, KvCacheSpec cache) {
            return (step, built, batch) -> {
              region = Option.some(step.workspace().region("counters"));
              return new ReferenceMetadata(batch);
            };
          }

          @Override
          void after(CommonAttentionMetadata batch, AttentionOutput output) {
            region.get().fill((byte) 1);
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void scratchExpectedToSurviveFromBuildToForward() {
    caught(
        new Mutant() {
          private Option<MemorySegment> region = Option.none();

          @Override
          public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
            return WorkspacePlan.of(
                0, new WorkspaceRegion("plan", 64, WorkspaceRegion.State.SCRATCH));
          }

          @Override
          public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
              LayerGroup group, KvCacheSpec cache) {
            return (step, built, batch) -> {
              region = Option.some(step.workspace().region("plan").fill((byte) 1));
              return new ReferenceMetadata(batch);
            };
          }

          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return region.get().get(ValueLayout.JAVA_BYTE, 0) == 1
                ? right
                : new ReferenceRow(right.at(), new double[right.out().length], right.lse());
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void leasedMemoryExpectedToBeZero() {
    caught(
        new Mutant() {
          private boolean clean;

          @Override
          public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
            return WorkspacePlan.of(64);
          }

          @Override
          public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
              LayerGroup group, KvCacheSpec cache) {
            return (step, built, batch) -> {
              clean = step.workspace().lease(64, 64).get(ValueLayout.JAVA_BYTE, 0) == 0;
              return new ReferenceMetadata(batch);
            };
          }

          @Override
          ReferenceRow row(Dense layer, ReferenceRow right) {
            return clean
                ? right
                : new ReferenceRow(right.at(), new double[right.out().length], right.lse());
          }
        },
        NumbersContract::everyDeclaredTypeOfQueries);
  }

  @Test
  void contractOfACacheNotCompared() {
    caughtBy(new Mutant(), CacheContract::cacheOfAnotherContractIsRefused);
  }

  @Test
  void slotsShiftedByOne() {
    caught(
        new Mutant() {
          @Override
          void writeKv(
              AttentionImpl<ReferenceMetadata> right,
              LaunchContext launch,
              KvInput input,
              KvCacheView cache,
              SlotMapping slots) {
            TensorView view = slots.slots();
            for (long i = 0; i < slots.tokens(); i++) {
              long slot = view.data().getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i);
              if (slot > 0 && slot % cache.spec().blockSize() > 0) {
                view.data().setAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i, slot - 1);
              }
            }
            right.writeKv(launch, input, cache, slots);
          }
        },
        CacheContract::writesWhatTheSlotsSayAndNothingElse);
  }

  @Test
  void paddingTokensWrittenToTheNullBlock() {
    caught(
        new Mutant() {
          @Override
          void writeKv(
              AttentionImpl<ReferenceMetadata> right,
              LaunchContext launch,
              KvInput input,
              KvCacheView cache,
              SlotMapping slots) {
            right.writeKv(launch, input, cache, slots);
            cache.memory().set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
          }
        },
        CacheContract::writesWhatTheSlotsSayAndNothingElse);
  }

  @Test
  void closedCacheAndWrongThreadNotChecked() {
    Mutant mutant =
        new Mutant() {
          @Override
          void check(LaunchContext launch, KvCacheView cache) {}
        };
    caughtBy(mutant, RefusalContract::anotherThreadIsRefused);
  }

  @Test
  void shapesOfTheOutputNotChecked() {
    caught(new Mutant(), RefusalContract::wrongTensorsAreRefused);
  }

  @Test
  void undeclaredFeaturesAccepted() {
    caught(
        new Mutant() {
          @Override
          FeatureSet features(FeatureSet right) {
            return right.withFeatures(
                right.features().remove(Feature.SOFTCAP).toJavaArray(Feature[]::new));
          }
        },
        CapabilityContract::whatIsNotDeclaredIsRefused);
  }

  @Test
  void captureDeclaredButNotKept() {
    caughtBy(
        new Mutant() {
          @Override
          public GraphSupport graphSupport(LayerGroup group) {
            return GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;
          }
        },
        CapabilityContract::captureKeysFollowTheDeclaration);
  }

  @Test
  void nothingDeclared() {
    caughtBy(
        new Mutant() {
          @Override
          FeatureSet features(FeatureSet right) {
            return FeatureSet.NONE;
          }
        },
        CapabilityContract::declarationIsNotEmpty);
  }

  @Test
  void mutantWithoutAMutationAgrees() {
    contract(new Mutant())
        .everyDeclaredTypeOfQueries()
        .forEach(test -> assertThat(failure(test)).as(test.getDisplayName()).isEmpty());
  }

  private static void caught(
      Mutant mutant, Function<AttentionBackendContract, Stream<DynamicTest>> tests) {
    if (tests.apply(contract(mutant)).noneMatch(test -> failure(test).isDefined())) {
      fail("the mutant lives");
    }
  }

  private static void caughtBy(Mutant mutant, ThrowingConsumer<AttentionBackendContract> test) {
    try {
      test.accept(contract(mutant));
    } catch (TestAbortedException e) {
      throw e;
    } catch (Throwable expected) {
      return;
    }
    fail("the mutant lives");
  }

  private static Option<Throwable> failure(DynamicTest test) {
    try {
      test.getExecutable().execute();
      return Option.none();
    } catch (Throwable t) {
      return Option.some(t);
    }
  }

  private static AttentionBackendContract contract(Mutant mutant) {
    return new AttentionBackendContract() {
      @Override
      public AttentionBackend<?> backend() {
        return mutant;
      }
    };
  }

  /** Where a mutant looks for a position. */
  private interface Place {
    int of(int request, int position);
  }

  private static KeyValues at(KeyValues right, Place place) {
    return new KeyValues() {
      @Override
      public void readKey(int request, int position, int kvHead, float[] key) {
        right.readKey(request, place.of(request, position), kvHead, key);
      }

      @Override
      public void readValue(int request, int position, int kvHead, float[] value) {
        right.readValue(request, place.of(request, position), kvHead, value);
      }
    };
  }

  /** Which images a mutant sees. */
  private interface Images {
    int[] of(CommonAttentionMetadata batch, int request);
  }

  private static CommonAttentionMetadata withImages(CommonAttentionMetadata batch, Images images) {
    int[] starts = new int[batch.live() + 1];
    int[] seqLens = new int[batch.live()];
    int[][] bounds = new int[batch.live()][];
    for (int r = 0; r < batch.live(); r++) {
      starts[r] = batch.queryStart(r);
      starts[r + 1] = starts[r] + batch.queryLen(r);
      seqLens[r] = batch.seqLen(r);
      bounds[r] = images.of(batch, r);
    }
    return CommonAttentionMetadata.builder(starts, seqLens, batch.blockTable(), batch.slots())
        .images(ImageRanges.of(bounds, batch.live()))
        .build();
  }
}

package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.workspace.Workspace;
import org.junit.jupiter.api.Test;

/** One batch, one child. */
class WholeBatchTest {
  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast = new SummingBackend("FAST", journal);

  private TestHost<CompositeMetadata<Metadata, Metadata>> host(FakePolicy policy) {
    var host =
        new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, policy));
    journal.events.clear();
    return host;
  }

  @Test
  void textGoesToTheFastChildAndTheGeneralChildWritesTheCache() {
    host(FakePolicy.imagesToA()).run(TestBatch.text(3, 9));

    assertThat(journal.events).containsExactly("FAST builds", "GENERAL writes", "FAST forwards");
  }

  @Test
  void imagesGoToTheGeneralChildAlone() {
    host(FakePolicy.imagesToA()).run(TestBatch.image(8, 8, 2, 5));

    assertThat(journal.events)
        .containsExactly("GENERAL builds", "GENERAL writes", "GENERAL forwards");
  }

  @Test
  void anEmptyBatchBuildsAndLaunchesNothing() {
    var batch = TestBatch.of(lens(0, 0), 4, 0).build();
    var host = host(FakePolicy.always(Child.A));
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);
      host.impl.forward(
          host.launch,
          TestHost.queries(batch),
          host.cache,
          metadata,
          TestHost.Result.poisoned(batch).output());

      assertThat(metadata).isInstanceOf(CompositeMetadata.Idle.class);
      assertThat(journal.events).isEmpty();
    }
  }

  @Test
  void onlyAChildThatCarriesImagesSeesThem() {
    CommonAttentionMetadata batch = TestBatch.image(8, 8, 2, 5);

    host(FakePolicy.always(Child.B).onlyACarriesImages()).run(batch);
    host(FakePolicy.always(Child.A).onlyACarriesImages()).run(batch);

    SummingBackend.Built byFast = journal.built.get(0);
    SummingBackend.Built byGeneral = journal.built.get(1);
    assertThat(byFast.group().mask().images()).isEqualTo(ImageMask.NONE);
    assertThat(byFast.batch().images().isEmpty()).isTrue();
    assertThat(byGeneral.group()).isEqualTo(TestHost.GROUP);
    assertThat(byGeneral.batch()).isSameAs(batch);
  }

  @Test
  void theRouteTravelsInTheMetadataWhileSeveralStepsAreOpen() {
    var host = host(FakePolicy.imagesToA());
    CommonAttentionMetadata text = TestBatch.text(2, 6);
    CommonAttentionMetadata image = TestBatch.image(8, 8, 2, 5);
    float[] textAlone = host.run(text).values();
    float[] imageAlone = host.run(image).values();
    try (Workspace.Step one = host.openStep();
        Workspace.Step two = host.openStep();
        Workspace.Step three = host.openStep()) {
      var first = host.build(one, text);
      var second = host.build(two, image);
      var third = host.build(three, text);

      assertThat(host.forward(second, image).values()).isEqualTo(imageAlone);
      assertThat(host.forward(third, text).values()).isEqualTo(textAlone);
      assertThat(host.forward(first, text).values()).isEqualTo(textAlone);
      assertThat(host.forward(second, image).values()).isEqualTo(imageAlone);
    }
  }
}

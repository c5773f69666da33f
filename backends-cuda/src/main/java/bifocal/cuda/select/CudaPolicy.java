package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPolicy;
import bifocal.core.select.LatentPrefill;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.LayerKind;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import bifocal.cuda.driver.CudaDevice;
import bifocal.cuda.driver.CudaProbe;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Function;

/**
 * How CUDA chooses: lists by compute capability, a composite in front where images must see their
 * own future, and what single models ask.
 */
public final class CudaPolicy implements PlatformPolicy {
  private static final int BLACKWELL = 10;
  private static final int HOPPER = 9;

  private static final Seq<BackendName> ON_BLACKWELL =
      names(
          KnownBackend.FLASHINFER,
          KnownBackend.FLASH_ATTN,
          KnownBackend.TRITON_ATTN,
          KnownBackend.FLEX_ATTENTION,
          KnownBackend.TURBOQUANT);
  private static final Seq<BackendName> ELSEWHERE =
      names(
          KnownBackend.FLASH_ATTN,
          KnownBackend.FLASHINFER,
          KnownBackend.TRITON_ATTN,
          KnownBackend.FLEX_ATTENTION,
          KnownBackend.TURBOQUANT);
  private static final Seq<BackendName> ON_BLACKWELL_WITH_IMAGES =
      ON_BLACKWELL.prepend(KnownBackend.TRITON_FLASHINFER.backend());
  private static final Seq<BackendName> ON_HOPPER_WITH_IMAGES =
      ELSEWHERE.prepend(KnownBackend.TRITON_FLASH_ATTN.backend());
  private static final Seq<BackendName> WIDER_KEYS_THAN_VALUES =
      names(KnownBackend.FLASH_ATTN_DIFFKV, KnownBackend.TRITON_ATTN_DIFFKV);
  private static final Seq<BackendName> BLOCK_SPARSE = names(KnownBackend.MINIMAX_M3_SPARSE);

  private final LatentPolicy latent;
  private final Function<ComputeCapability, Set<String>> packages;

  /** The policy of dense layers, and another for latent ones. */
  public CudaPolicy(LatentPolicy latent) {
    this(latent, capability -> HashSet.empty());
  }

  /**
   * A policy that knows which optional kernel packages a probed host has.
   *
   * @param packages those of a device of this host, by its compute capability
   */
  public CudaPolicy(LatentPolicy latent, Function<ComputeCapability, Set<String>> packages) {
    this.latent = latent;
    this.packages = packages;
  }

  @Override
  public Platform platform() {
    return Platform.CUDA;
  }

  @Override
  public Seq<String> packages() {
    return KernelPackages.names().append(LatentPrefillBackend.FLASH_ATTENTION);
  }

  @Override
  public Option<DeviceProfile> probe() {
    return switch (CudaProbe.look()) {
      case CudaProbe.Present present -> {
        CudaDevice first = present.devices().head();
        yield Option.some(first.profile(packages.apply(first.capability())));
      }
      case CudaProbe.Absent absent -> Option.none();
    };
  }

  @Override
  public DeviceProfile simulate(DeviceDescription description) {
    return new DeviceProfile.Cuda(
        description
            .capability()
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                            ErrorCode.INVALID_OPTION, "platform cuda", "no capability", "one")
                        .withRemedy("say --capability 9.0, for instance")),
        description.packages(),
        true);
  }

  @Override
  public SelectionPlan plan(SelectionRequest request) {
    AttentionRequest asked = request.asked();
    SelectionPlan plan = byLayer(request, asked);
    return Sm.unknown(asked.device()).map(plan::noting).getOrElse(plan);
  }

  private SelectionPlan byLayer(SelectionRequest request, AttentionRequest asked) {
    return switch (asked.layer()) {
      case AttentionLayerSpec.Dense dense -> dense(request, asked);
      case AttentionLayerSpec.BlockSparse sparse -> blockSparse(request, asked, sparse);
      case AttentionLayerSpec.Mla mla -> latent.plan(request, asked);
      case AttentionLayerSpec.SparseMla sparse -> latent.plan(request, asked);
    };
  }

  /**
   * The backend of block-sparse layers reads no cache of type {@code auto}. A model wires it
   * whatever else is named for its other layers.
   */
  private static SelectionPlan blockSparse(
      SelectionRequest request, AttentionRequest asked, AttentionLayerSpec.BlockSparse sparse) {
    KvCacheDtype cache = sparse.kvCacheDtype();
    AttentionRequest resolved =
        asked.withLayer(
            sparse.cachedAs(cache == KvCacheDtype.AUTO ? cache.resolve(sparse.dtype()) : cache));
    SelectionPlan plan =
        SelectionPlan.byModel(
            resolved, BLOCK_SPARSE, "block-sparse layers are wired to their own backend");
    Option<BackendName> other =
        request
            .config()
            .backendOf(LayerKind.of(sparse))
            .filter(name -> !BLOCK_SPARSE.contains(name));
    return request.model().miniMaxM3() && other.isDefined()
        ? plan.whateverIsNamed().noting(other.get() + " is for the dense layers alone")
        : plan;
  }

  private static SelectionPlan dense(SelectionRequest request, AttentionRequest asked) {
    if (asked.layer().headSizeV() != asked.layer().headSize()) {
      return SelectionPlan.byModel(
          asked,
          WIDER_KEYS_THAN_VALUES,
          "a model whose keys and values differ in width names its backends");
    }
    if (request.config().backend().isEmpty() && asked.deployment().rswa()) {
      return SelectionPlan.byModel(
          asked,
          FlashAttentionVersions.hasVersion4(asked.device())
              ? names(KnownBackend.FLASH_ATTN)
              : names(KnownBackend.TRITON_ATTN),
          "R-SWA models run on FlashAttention 4, or on Triton where there is none");
    }
    return heterogeneousHeads(request, asked);
  }

  /** A model with heads of several sizes gets one FlashAttention version for all its layers. */
  private static SelectionPlan heterogeneousHeads(
      SelectionRequest request, AttentionRequest asked) {
    boolean mixed =
        request.model().family().equals("Gemma 4") && request.model().headSizes().size() > 1;
    Option<BackendName> named = request.config().backend();
    if (!mixed || asked.deployment().kernels().flashAttention().isDefined()) {
      return SelectionPlan.byPriority(asked, order(asked));
    }
    String heads = request.model().headSizes().mkString("[", ", ", "]");
    boolean promotable =
        FlashAttentionVersions.hasVersion4(asked.device())
            && request.model().headSizes().forAll(size -> size <= 512);
    if (promotable && named.forAll(FlashAttention.NAME::equals)) {
      SelectionPlan promoted = promoted(asked);
      return FlashAttentionVersions.started(asked) == 4
          ? promoted
          : promoted.noting(
              "Gemma4 model has heterogeneous head dimensions "
                  + heads
                  + ". Using FA4 for all layers to avoid mixed FA3/FA4 penalty.");
    }
    if (named.isEmpty() && !KernelPackages.FLASH_ATTENTION_4.on(asked.device())) {
      return SelectionPlan.byModel(
          asked,
          names(KnownBackend.TRITON_ATTN),
          "Gemma4 model has heterogeneous head dimensions "
              + heads
              + ". FA4 not available, forcing TRITON_ATTN backend.");
    }
    return SelectionPlan.byPriority(asked, order(asked));
  }

  private static SelectionPlan promoted(AttentionRequest asked) {
    AttentionRequest promoted =
        new AttentionRequest(
            asked.layer(),
            asked.device(),
            asked.blockSize(),
            asked
                .deployment()
                .withKernels(
                    asked
                        .deployment()
                        .kernels()
                        .withFlashAttention(new FlashAttentionVersion(4, false))));
    return SelectionPlan.byPriority(promoted, order(promoted));
  }

  private static Seq<BackendName> order(AttentionRequest asked) {
    int major = Sm.major(asked.device());
    boolean nonCausal =
        !asked.layer().mask().causal() && asked.layer().type() == AttentionType.DECODER;
    if (major == BLACKWELL && !nonCausal) {
      return asked.mmPrefix() ? ON_BLACKWELL_WITH_IMAGES : ON_BLACKWELL;
    }
    return major == HOPPER && asked.mmPrefix() ? ON_HOPPER_WITH_IMAGES : ELSEWHERE;
  }

  @Override
  public Seq<PriorityList> priorityLists() {
    return Vector.of(
            new PriorityList("standard", "SM 10.x", "", ON_BLACKWELL),
            new PriorityList("standard", "SM 8.x-9.x", "", ELSEWHERE),
            new PriorityList(
                "standard", "SM 10.x", "causal, images see both ways", ON_BLACKWELL_WITH_IMAGES),
            new PriorityList("standard", "SM 9.x", "images see both ways", ON_HOPPER_WITH_IMAGES))
        .appendAll(LatentOrder.printed());
  }

  @Override
  public Validation<Seq<InvalidReason>, LatentPrefill> latentPrefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    return CudaLatentPolicy.prefill(decode, asked, config, registered);
  }

  @Override
  public Seq<Seq<String>> latentPrefillRows() {
    return CudaLatentPolicy.prefillRows();
  }

  static Seq<BackendName> names(KnownBackend... backends) {
    return Vector.of(backends).map(KnownBackend::backend);
  }
}

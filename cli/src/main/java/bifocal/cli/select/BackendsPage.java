package bifocal.cli.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.Composed;
import bifocal.core.backend.FeatureSet;
import bifocal.core.select.ConfigKey;
import bifocal.core.select.ConfigKeys;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.select.FeatureTables;
import bifocal.core.select.PriorityList;
import bifocal.core.select.Selector;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * The page {@code docs/backends.md}, written from what is registered, so that it cannot say other
 * than what is validated.
 */
final class BackendsPage {
  private static final Seq<FeatureColumn> ALWAYS =
      Vector.of(
          FeatureColumn.DTYPES,
          FeatureColumn.KV_DTYPES,
          FeatureColumn.BLOCK_SIZES,
          FeatureColumn.HEAD_SIZES,
          FeatureColumn.SINK,
          FeatureColumn.NON_CAUSAL);
  private static final Seq<FeatureColumn> LAST =
      Vector.of(
          FeatureColumn.MM_PREFIX,
          FeatureColumn.DCP,
          FeatureColumn.ATTENTION_TYPES,
          FeatureColumn.COMPUTE_CAPABILITY);

  private final Selector selector;
  private final BackendRegistry.Snapshot registry;

  private BackendsPage(Selector selector) {
    this.selector = selector;
    this.registry = selector.registry().snapshot();
  }

  /** The page. */
  static String of(Selector selector) {
    return new BackendsPage(selector).page().mkString("", "\n", "\n");
  }

  private Seq<String> page() {
    return Vector.<String>empty()
        .appendAll(introduction())
        .appendAll(configuration())
        .appendAll(priorities())
        .appendAll(legend())
        .appendAll(features(FeatureTable.STANDARD, "Standard attention (MHA, MQA, GQA)"))
        .appendAll(footnotes())
        .appendAll(composites())
        .appendAll(features(FeatureTable.MINIMAX_M3, "Block-sparse attention of MiniMax M3"))
        .appendAll(features(FeatureTable.MLA, "Latent attention (MLA), decode"))
        .appendAll(latentPrefill())
        .appendAll(features(FeatureTable.DEEPSEEK_V4, "Sparse latent attention of DeepSeek V4"))
        .appendAll(execution());
  }

  private static Seq<String> introduction() {
    return Vector.of(
        "# Backends",
        "",
        "This page is written from the declarations that validate and dispatch; a test compares it"
            + " with them.",
        "To write it again: `mvn -q -pl cli -am test -Dtest=BackendsPageTest -Dbifocal.docs=write"
            + " -Dsurefire.failIfNoSpecifiedTests=false`.",
        "",
        "`bifocal select` says which backend a layer gets, `bifocal explain` why, and what would"
            + " have to change.",
        "A backend that the user names is taken or refused, never replaced. Without a name, the"
            + " first valid",
        "candidate of the platform's list is taken; when there is none, every candidate is listed"
            + " with its reasons.",
        "");
  }

  private static Seq<String> configuration() {
    return Vector.of(
            "## Naming a backend",
            "",
            "| form | example |",
            "| --- | --- |",
            "| option | `--attention-backend FLASH_ATTN` |",
            "| key | `--attention-config.backend FLASH_ATTN`, `-ac.backend=FLASH_ATTN` |",
            "| JSON | `-ac '{\"backend\": \"FLASH_ATTN\"}'` |",
            "| Java | `AttentionConfig.builder().backend(KnownBackend.FLASH_ATTN).build()` |",
            "| Java, by a string | `AttentionConfig.builder().attentionBackend(\"FLASH_ATTN\")` |",
            "",
            "The option excludes the key, in any of its forms. Names are read in any letter case;"
                + " `auto` decides.",
            "",
            "| key | value | meaning |",
            "| --- | --- | --- |")
        .appendAll(ConfigKeys.ALL.map(BackendsPage::key))
        .append("");
  }

  private static String key(ConfigKey key) {
    String value =
        key.schema().has("enum")
            ? Vector.ofAll(key.schema().get("enum")).map(v -> v.asText()).mkString(", ")
            : key.schema().get("type").asText();
    return "| `" + key.name() + "` | " + value + " | " + key.description() + " |";
  }

  private Seq<String> priorities() {
    return Vector.of("## Priorities", "", "Priority 1 is tried first.", "")
        .appendAll(
            selector.policies().flatMap(policy -> policy.priorityLists()).flatMap(this::priority));
  }

  private Seq<String> priority(PriorityList list) {
    Seq<String> present =
        list.order().filter(name -> registry.find(name).isDefined()).map(name -> name.value());
    return present.isEmpty()
        ? Vector.empty()
        : Vector.of(
                "**"
                    + (list.attention().equals("mla") ? "MLA" : "Standard")
                    + ", "
                    + list.devices()
                    + (list.condition().isEmpty() ? "" : ", " + list.condition())
                    + "**",
                "",
                "| priority | backend |",
                "| --- | --- |")
            .appendAll(
                present.zipWithIndex().map(at -> "| " + (at._2() + 1) + " | " + at._1() + " |"))
            .append("");
  }

  private static Seq<String> legend() {
    return Vector.of(
        "## Legend",
        "",
        "| column | meaning |",
        "| --- | --- |",
        "| Dtypes | types of the model |",
        "| KV Dtypes | types of the KV cache |",
        "| Block Sizes | tokens per block of the cache; %N is any multiple of N |",
        "| Head Sizes | elements per head |",
        "| Sink | a sink logit per head |",
        "| Non-Causal | decoder layers that attend both ways |",
        "| Sparse | attention over chosen keys (MLA only) |",
        "| MM Prefix | images that see their own future |",
        "| DCP | decode context parallelism |",
        "| Attention Types | decoder, encoder, encoder only, encoder-decoder |",
        "| Compute Cap. | compute capability on CUDA; N/A beside it |",
        "",
        "✅ = supported, ❌ = not supported",
        "");
  }

  private Seq<String> features(FeatureTable table, String title) {
    Seq<FeatureRow> rows = FeatureTables.rows(registry, table);
    if (rows.isEmpty()) {
      return Vector.empty();
    }
    boolean versions = rows.exists(row -> !row.version().isEmpty());
    Seq<FeatureColumn> columns =
        Vector.of(FeatureColumn.BACKEND)
            .appendAll(versions ? Vector.of(FeatureColumn.VERSION) : Vector.empty())
            .appendAll(ALWAYS)
            .appendAll(table.tellsSparse() ? Vector.of(FeatureColumn.SPARSE) : Vector.empty())
            .appendAll(LAST);
    return Vector.of("## " + title, "", line(columns.map(BackendsPage::heading)))
        .append(line(columns.map(column -> "---")))
        .appendAll(rows.map(row -> line(columns.map(column -> marked(row, column)))))
        .append("");
  }

  private static String heading(FeatureColumn column) {
    return switch (column) {
      case TABLE -> "Table";
      case BACKEND -> "Backend";
      case VERSION -> "Version";
      case DTYPES -> "Dtypes";
      case KV_DTYPES -> "KV Dtypes";
      case BLOCK_SIZES -> "Block Sizes";
      case HEAD_SIZES -> "Head Sizes";
      case SINK -> "Sink";
      case NON_CAUSAL -> "Non-Causal";
      case SPARSE -> "Sparse";
      case MM_PREFIX -> "MM Prefix";
      case DCP -> "DCP";
      case ATTENTION_TYPES -> "Attention Types";
      case COMPUTE_CAPABILITY -> "Compute Cap.";
    };
  }

  private static String marked(FeatureRow row, FeatureColumn column) {
    String cell = row.cell(column);
    return switch (column) {
      case SINK, NON_CAUSAL, SPARSE, MM_PREFIX, DCP -> cell.equals("yes") ? "✅" : "❌";
      case VERSION -> cell + footnoteMark(row);
      case BACKEND -> "`" + cell + "`";
      case TABLE, DTYPES, KV_DTYPES, BLOCK_SIZES, HEAD_SIZES, ATTENTION_TYPES, COMPUTE_CAPABILITY ->
          cell;
    };
  }

  private static String footnoteMark(FeatureRow row) {
    if (row.version().isEmpty()) {
      return "";
    }
    return row.version().startsWith("FA") ? "\\*" : "†";
  }

  private static Seq<String> footnotes() {
    return Vector.of(
        "† FlashInfer's own kernels are called Native. XQA decodes on 9.0, trtllm-gen on 10.x,"
            + " where it also takes",
        "sinks. `-ac.use_trtllm_attention=0` switches both off.",
        "",
        "\\* The version is chosen by device and layer, or wanted by `-ac.flash_attn_version=2`,"
            + " `3` or `4`: by default 4 on",
        "10.x, 3 on 9.x, 2 elsewhere. On 9.x, version 4 takes heads beyond 256. On 10.x, heads of"
            + " 256 have a kernel of",
        "their own, which wants blocks of 128 (chosen unless a size is pinned) and takes neither"
            + " softcap, sinks, image",
        "masks, R-SWA, DCP nor windowed encoders: such layers run version 2, and the report says"
            + " so. A pinned block size",
        "that 128 does not divide makes the backend invalid for them. A version that the user"
            + " wants is never replaced.",
        "",
        "`B12X` (12.0 and 12.1) and `HPC_ATTN` (9.0) are never chosen unasked.",
        "");
  }

  private Seq<String> composites() {
    Seq<AttentionBackend<?>> composites =
        registry
            .backends()
            .filter(backend -> backend instanceof Composed)
            .sortBy(AttentionBackend::name);
    return Vector.of(
            "## Composites",
            "",
            "The general child runs requests whose images see their own future, and writes the"
                + " cache; the causal child",
            "runs all else over the same cache. An image in the past does not call for the general"
                + " child.",
            "",
            "| Backend | General | Causal | KV Dtypes | Block Sizes | Head Sizes | MM Prefix |"
                + " Compute Cap. |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |")
        .appendAll(composites.map(BackendsPage::composite))
        .appendAll(
            Vector.of(
                "",
                "The causal child of `TRITON_FLASH_ATTN` must be FlashAttention 4, which a model of"
                    + " several head sizes gets for",
                "all its layers; `-ac.triton_flash_attn_allows_fa3=1` lets it be version 3.",
                ""));
  }

  private static String composite(AttentionBackend<?> backend) {
    Composed pair = (Composed) backend;
    FeatureSet features = backend.capabilities().all();
    FeatureRow row = FeatureRow.of(FeatureTable.STANDARD, backend.name(), "", features);
    return line(
        Vector.of(
            "`" + backend.name() + "`",
            "`" + pair.childA().name() + "`",
            "`" + pair.childB().name() + "`",
            row.cell(FeatureColumn.KV_DTYPES),
            row.cell(FeatureColumn.BLOCK_SIZES),
            row.cell(FeatureColumn.HEAD_SIZES),
            row.cell(FeatureColumn.MM_PREFIX).equals("yes") ? "✅" : "❌",
            row.cell(FeatureColumn.COMPUTE_CAPABILITY)));
  }

  private Seq<String> latentPrefill() {
    Table table = Tables.named(selector, "mla_prefill");
    return table.rows().isEmpty()
        ? Vector.empty()
        : Vector.of("## Latent attention, prefill", "")
            .appendAll(Vector.of(TableFormat.MD.write(table).split("\n")))
            .append("");
  }

  private Seq<String> execution() {
    return Vector.of(
            "## What runs in this build",
            "",
            "Every row is validated and selected, on simulated devices, too; `native` rows also"
                + " run.",
            "")
        .appendAll(
            Vector.of(TableFormat.MD.write(Tables.named(selector, "execution")).split("\n")));
  }

  private static String line(Seq<String> cells) {
    return cells.mkString("| ", " | ", " |");
  }
}

package bifocal.cuda.pack;

import bifocal.core.tensor.DType;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The manifest entries of kernels by kind: grid, tile, and arguments as the kernels take them. */
final class SyntheticKernels {
  private static final String[] ATTENTION_STRIDES = {
    "q_stride_token", "q_stride_head", "out_stride_token", "out_stride_head"
  };
  private static final String[] LOOSE_STRIDES = {
    "lse_stride_token", "lse_stride_head", "block_table_stride"
  };
  private static final String[] CACHE_STRIDES = {
    "k_stride_block", "k_stride_slot", "k_stride_head",
    "v_stride_block", "v_stride_slot", "v_stride_head"
  };
  private static final String[] SCALE_STRIDES = {
    "ks_stride_block", "ks_stride_slot", "ks_stride_head",
    "vs_stride_block", "vs_stride_slot", "vs_stride_head"
  };

  private final ArrayNode arguments;
  private int end;

  private SyntheticKernels(ArrayNode arguments) {
    this.arguments = arguments;
  }

  static void describe(ObjectNode kernel, Specialisation specialisation) {
    ObjectNode select = kernel.putObject("select");
    ObjectNode grid = kernel.putObject("grid");
    SyntheticKernels made = new SyntheticKernels(kernel.putArray("arguments"));
    select.put("dtype", specialisation.dtype().label());
    select.put("head_size", specialisation.headSize());
    switch (specialisation) {
      case Specialisation.Merge merge -> {
        select.put("use", "merge");
        out(select, merge.wide());
        grid.put("x", "tiles").put("y", "query_heads").put("z", "tile_tokens");
        made.merge(merge.wide() ? DType.FP32 : merge.dtype());
      }
      case Specialisation.Write write -> {
        select.put("use", "write");
        cache(select, write.cache());
        grid.put("x", "tokens").put("y", "kv_heads/8").put("z", "1");
        made.write(write);
      }
      case Specialisation.Attention attention -> {
        attention(kernel, select, grid, attention);
        made.attention(attention);
      }
    }
    made.pointers("u8", "global_scratch", "profile_scratch");
  }

  private static void attention(
      ObjectNode kernel, ObjectNode select, ObjectNode grid, Specialisation.Attention of) {
    boolean hopper = of.engine() == Specialisation.Engine.HOPPER;
    boolean decode = of.phase() == Specialisation.Phase.DECODE;
    select.put("use", of.phase().label()).put("engine", of.engine().label());
    select.put("variant", of.variant().label()).put("group", of.group());
    select.put("block_size", of.blockSize()).put("softcap", of.softcap()).put("alibi", of.alibi());
    cache(select, of.cache());
    out(select, of.wide());
    int rows = decode ? 16 : 128;
    kernel.putObject("tile").put("rows", rows).put("tokens", rows / of.group()).put("keys", 64);
    grid.put("x", hopper ? "programs" : "tiles");
    grid.put("y", hopper ? "1" : "kv_heads").put("z", decode ? "splits" : "1");
  }

  private static void cache(ObjectNode select, CacheFormat cache) {
    select.put("kv", cache.numbers().label()).put("token_scales", cache.tokenScales());
  }

  private static void out(ObjectNode select, boolean wide) {
    if (wide) {
      select.put("out", "fp32");
    }
  }

  private void merge(DType out) {
    aligned("pointer", out.label(), 8, "out");
    pointers("fp32", "lse");
    aligned("pointer", "fp32", 8, "partial_out");
    pointers("fp32", "partial_lse");
    pointers("i32", "tiles");
    aligned("stride", "i64", 8, "out_stride_token", "out_stride_head");
    scalars("i64", 8, "lse_stride_token", "lse_stride_head");
    scalars("i32", 4, "num_splits", "write_lse");
  }

  private void write(Specialisation.Write write) {
    aligned("pointer", write.dtype().label(), 8, "key", "value");
    aligned("pointer", element(write.dtype(), write.cache()), 8, "k_cache", "v_cache");
    pointers("i64", "slot_mapping");
    pointers("fp32", "k_scales", "v_scales");
    aligned(
        "stride",
        "i64",
        8,
        "key_stride_token",
        "key_stride_head",
        "value_stride_token",
        "value_stride_head");
    aligned("stride", "i64", 8, CACHE_STRIDES);
    scalars("i64", 8, SCALE_STRIDES);
    scalars("i32", 4, "num_kv_heads", "block_size");
  }

  private void attention(Specialisation.Attention of) {
    boolean hopper = of.engine() == Specialisation.Engine.HOPPER;
    aligned("pointer", of.dtype().label(), 8, "q");
    if (hopper) {
      map("k_map", of);
      map("v_map", of);
    } else {
      aligned("pointer", element(of.dtype(), of.cache()), 8, "k_cache", "v_cache");
    }
    aligned("pointer", (of.wide() ? DType.FP32 : of.dtype()).label(), 8, "out");
    pointers("fp32", "lse");
    if (!hopper) {
      aligned("pointer", "fp32", 8, "partial_out");
      pointers("fp32", "partial_lse");
    }
    pointers("i32", "tiles", "key_low", "key_high", "block_table");
    pointers("fp32", "sinks", "alibi_slopes");
    if (!hopper) {
      pointers("fp32", "k_scales", "v_scales");
    }
    scalars("f32", 4, "softmax_scale", "softcap");
    aligned("stride", "i64", 8, ATTENTION_STRIDES);
    scalars("i64", 8, LOOSE_STRIDES);
    if (hopper) {
      scalars("i32", 4, "write_lse", "has_sinks", "num_tiles", "num_kv_heads", "tiles_per_unit");
    } else {
      aligned("stride", "i64", 8, CACHE_STRIDES);
      scalars("i64", 8, SCALE_STRIDES);
      scalars("i32", 4, "num_splits", "write_lse", "has_sinks");
    }
  }

  private static String element(DType model, CacheFormat cache) {
    return switch (cache.numbers()) {
      case SAME -> model.label();
      case E4M3, E5M2 -> "u8";
      case INT8 -> "i8";
    };
  }

  private void map(String name, Specialisation.Attention of) {
    ObjectNode argument = add(name, "tensor_map", of.dtype().label(), 128, 64);
    argument.putArray("box").add(1).add(Math.min(of.blockSize(), 64)).add(1).add(64);
    argument.put("swizzle", 3).put("element_bytes", 2);
    for (int axis = 0; axis < 4; axis++) {
      scalars("i32", 4, name + "_shape_" + axis);
    }
    for (int axis = 0; axis < 4; axis++) {
      scalars("i64", 8, name + "_stride_" + axis);
    }
  }

  private void pointers(String element, String... names) {
    for (String name : names) {
      add(name, "pointer", element, 8, 8);
    }
  }

  private void aligned(String kind, String element, int size, String... names) {
    for (String name : names) {
      add(name, kind, element, size, size).put("multiple_of", 16);
    }
  }

  private void scalars(String element, int size, String... names) {
    for (String name : names) {
      add(name, "scalar", element, size, size);
    }
  }

  private ObjectNode add(String name, String kind, String element, int size, int alignment) {
    int offset = Math.ceilDiv(end, alignment) * alignment;
    end = offset + size;
    ObjectNode argument = arguments.addObject();
    argument.put("name", name).put("kind", kind).put("element", element);
    return argument.put("offset", offset).put("size", size);
  }
}

package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Scene.Contiguous;
import bifocal.benchmarks.cpu.Work.Request;
import bifocal.benchmarks.cpu.ffi.Libtorch;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * PyTorch's flash attention for CPUs, served as well as it can be: keys and values lie one behind
 * the other and are never gathered, heads of a group share them by a stride of 0, a decode packs
 * its group's heads as query rows, and decodes of one length are a single call.
 */
final class LibtorchContender implements Contender {
  private final Libtorch torch;
  private final Work work;
  private final int threads;
  private final List<Call> calls = new ArrayList<>();

  /**
   * One call.
   *
   * @param firstToken row of q of its first output
   * @param decodes requests of one query token each, 0 for a prompt
   */
  private record Call(
      long q, long k, long v, boolean causal, Option<Long> mask, int firstToken, int decodes) {}

  /** Output of a call: handle, memory, strides. */
  private record Result(Call call, long handle, MemorySegment data, long[] strides) {}

  private List<Result> results = List.of();

  LibtorchContender(Libtorch torch, Scene scene, int threads) {
    this.torch = torch;
    this.work = scene.work();
    this.threads = threads;
    Contiguous keyValues = scene.contiguous();
    if (work.decodesOnly() && work.uniform()) {
      calls.add(decodes(scene, keyValues, 0, 0, work.requests().size()));
      return;
    }
    int token = 0;
    for (int r = 0; r < work.requests().size(); r++) {
      Request request = work.requests().get(r);
      calls.add(
          request.queryLen() == 1
              ? decodes(scene, keyValues, r, token, 1)
              : prompt(scene, keyValues, r, token));
      token += request.queryLen();
    }
  }

  private Call decodes(Scene scene, Contiguous kv, int request, int token, int count) {
    long d = work.headSize();
    long length = work.requests().get(request).seqLen();
    long[] sizes = {(long) count * Work.KV_HEADS, 1, Work.GROUP, d};
    long[] strides = {Work.GROUP * d, Work.GROUP * d, d, 1};
    long[] kvSizes = {(long) count * Work.KV_HEADS, 1, length, d};
    long[] kvStrides = {length * d, length * d, d, 1};
    return new Call(
        torch.tensor(rows(scene, token), work.dtype(), sizes, strides),
        torch.tensor(part(kv.k(), kv, request), work.dtype(), kvSizes, kvStrides),
        torch.tensor(part(kv.v(), kv, request), work.dtype(), kvSizes, kvStrides),
        false,
        Option.none(),
        token,
        count);
  }

  private Call prompt(Scene scene, Contiguous kv, int r, int token) {
    Request request = work.requests().get(r);
    long d = work.headSize();
    long[] sizes = {Work.KV_HEADS, Work.GROUP, request.queryLen(), d};
    long[] strides = {Work.GROUP * d, d, Work.HEADS * d, 1};
    long[] kvSizes = {Work.KV_HEADS, Work.GROUP, request.seqLen(), d};
    long[] kvStrides = {request.seqLen() * d, 0, d, 1};
    boolean whole = request.queryLen() == request.seqLen();
    return new Call(
        torch.tensor(rows(scene, token), work.dtype(), sizes, strides),
        torch.tensor(part(kv.k(), kv, r), work.dtype(), kvSizes, kvStrides),
        torch.tensor(part(kv.v(), kv, r), work.dtype(), kvSizes, kvStrides),
        whole,
        whole ? Option.none() : Option.some(denseMask(scene, request)),
        token,
        0);
  }

  /** A chunk behind a context cannot be said otherwise. */
  private long denseMask(Scene scene, Request request) {
    long rows = request.queryLen();
    long columns = request.seqLen();
    MemorySegment mask = scene.arena().allocate(rows * columns * Float.BYTES, 64);
    for (long r = 0; r < rows; r++) {
      for (long c = columns - rows + r + 1; c < columns; c++) {
        mask.setAtIndex(ValueLayout.JAVA_FLOAT, r * columns + c, Float.NEGATIVE_INFINITY);
      }
    }
    return torch.tensor(
        mask,
        DType.FP32,
        new long[] {1, 1, rows, columns},
        new long[] {rows * columns, rows * columns, columns, 1});
  }

  private MemorySegment rows(Scene scene, int token) {
    return scene
        .q()
        .data()
        .asSlice((long) token * Work.HEADS * work.headSize() * work.dtype().bytes());
  }

  private MemorySegment part(MemorySegment all, Contiguous kv, int request) {
    return all.asSlice(kv.starts()[request] * work.headSize() * work.dtype().bytes());
  }

  @Override
  public String name() {
    return "libtorch";
  }

  @Override
  public void run() {
    torch.useThreads(threads);
    for (Call call : calls) {
      torch.delete(torch.attend(call.q(), call.k(), call.v(), call.causal(), call.mask()));
    }
  }

  @Override
  public void read(int token, int head, float[] values) {
    if (results.isEmpty()) {
      results = calls.stream().map(this::result).toList();
    }
    int found = 0;
    while (found + 1 < results.size() && results.get(found + 1).call().firstToken() <= token) {
      found++;
    }
    Result result = results.get(found);
    long[] s = result.strides();
    int row = token - result.call().firstToken();
    long at =
        result.call().decodes() > 0
            ? ((long) row * Work.KV_HEADS + head / Work.GROUP) * s[0] + head % Work.GROUP * s[2]
            : head / Work.GROUP * s[0] + head % Work.GROUP * s[1] + row * s[2];
    for (int d = 0; d < values.length; d++) {
      values[d] = Numbers.read(result.data(), at + d * s[3], work.dtype());
    }
  }

  private Result result(Call call) {
    long handle = torch.attend(call.q(), call.k(), call.v(), call.causal(), call.mask());
    long tokens = call.decodes() > 0 ? call.decodes() : work.queryTokens() - call.firstToken();
    long most = tokens * Work.HEADS * work.headSize() * work.dtype().bytes();
    return new Result(call, handle, torch.data(handle, most), torch.strides(handle));
  }

  @Override
  public void close() {
    results.forEach(result -> torch.delete(result.handle()));
    results = List.of();
    for (Call call : calls) {
      Arrays.stream(new long[] {call.q(), call.k(), call.v()}).forEach(torch::delete);
      call.mask().forEach(torch::delete);
    }
  }
}

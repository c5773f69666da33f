package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.cache.KvLayouts;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonRun;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Calls FlashInfer's modules for the first time while the device has no memory left, then again
 * with memory, and prints what each call says. Modules load their kernels when they are first
 * called, so the test runs this as a process of its own.
 */
final class FullDeviceProgram {
  private static final int[][] SHAPES = {{256, 2}, {128, 4}};

  private FullDeviceProgram() {}

  public static void main(String[] arguments) {
    Path packs = Path.of(arguments[0]);
    try (CudaContext context = CudaContext.primary(CudaDriver.load(), 0);
        TritonDevice kernels =
            TritonDevice.of(context, KernelPack.open(packs, context.device().capability()).get());
        FlashInferDevice device =
            new FlashInferDevice(
                kernels, FlashInferPack.open(packs, context.device().capability()).get())) {
      List<TritonRun<FlashInferMetadata>> runs = new ArrayList<>();
      for (int[] shape : SHAPES) {
        runs.add(
            TritonRun.over(
                new FlashInferBackend(FlashInferHost.with(device)),
                context,
                Dense.decoder(2 * shape[1], 2, shape[0], DType.BF16, AttentionMask.CAUSAL),
                KvLayouts.NHD,
                64,
                40));
      }
      try (FullDevice full = new FullDevice(context, 1 << 12)) {
        System.out.println("taken " + full.taken());
        runs.forEach(run -> say("full ", run));
      }
      runs.forEach(run -> say("free ", run));
      runs.forEach(run -> say("again ", run));
      runs.forEach(TritonRun::close);
    }
    System.out.println("closed");
  }

  private static void say(String when, TritonRun<FlashInferMetadata> run) {
    String said = "no error";
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata =
          run.build(step, run.batch(new int[] {0, 1, 2, 42}, new int[] {300, 17, 40}, 3, 1));
      run.impl.forward(
          run.device.launch(), run.q, run.cache, metadata, AttentionOutput.of(run.output.out()));
      run.device.stream().synchronize();
    } catch (BifocalException e) {
      said = e.code() + " " + e.getMessage().replace('\n', ' ');
    }
    System.out.println(when + run.layer.headSize() + " " + said);
  }
}

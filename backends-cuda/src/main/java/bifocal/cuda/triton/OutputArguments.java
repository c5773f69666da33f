package bifocal.cuda.triton;

import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.PreparedLaunch;
import io.vavr.control.Option;

/** Where a kernel takes its output and log-sum-exp. */
final class OutputArguments {
  private final int out;
  private final int outStrideToken;
  private final int outStrideHead;
  private final int lse;
  private final int lseStrideToken;
  private final int lseStrideHead;
  private final int writeLse;

  OutputArguments(LoadedKernel kernel) {
    this.out = kernel.index("out");
    this.outStrideToken = kernel.index("out_stride_token");
    this.outStrideHead = kernel.index("out_stride_head");
    this.lse = kernel.index("lse");
    this.lseStrideToken = kernel.index("lse_stride_token");
    this.lseStrideHead = kernel.index("lse_stride_head");
    this.writeLse = kernel.index("write_lse");
  }

  void set(PreparedLaunch launch, TensorView to, Option<TensorView> wanted) {
    launch.setLong(out, to.address());
    launch.setLong(outStrideToken, to.stride(0));
    launch.setLong(outStrideHead, to.stride(1));
    boolean wants = wanted.isDefined();
    launch.setInt(writeLse, wants ? 1 : 0);
    launch.setLong(lse, wants ? wanted.get().address() : to.address());
    launch.setLong(lseStrideToken, wants ? wanted.get().stride(0) : 0);
    launch.setLong(lseStrideHead, wants ? wanted.get().stride(1) : 0);
  }
}

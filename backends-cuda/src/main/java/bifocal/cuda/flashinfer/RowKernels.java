package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLibrary;
import java.io.IOException;
import java.io.InputStream;

/**
 * This project's kernels beside the modules. They come as PTX, which the driver compiles for its
 * device.
 *
 * @param library the compiled kernels
 */
record RowKernels(CudaLibrary library) {
  private static final String NAME = "bifocal_rows";
  private static final String FILE = "rows.ptx";

  /** Where the code comes from. */
  @FunctionalInterface
  interface Source {
    /** What the driver loads. */
    byte[] code();

    /** The code of this build. */
    Source OWN = RowKernels::read;
  }

  static RowKernels load(CudaContext context, Source source) {
    return new RowKernels(CudaLibrary.load(context, NAME, source.code()));
  }

  private static byte[] read() {
    try (InputStream in = RowKernels.class.getResourceAsStream(FILE)) {
      if (in == null) {
        throw BifocalException.of(ErrorCode.INTERNAL, "this build lacks " + FILE);
      }
      return in.readAllBytes();
    } catch (IOException e) {
      throw BifocalException.of(ErrorCode.INTERNAL, "reading " + FILE).causedBy(e);
    }
  }

  NaturalLog naturalLog() {
    return new NaturalLog(library.kernel(NaturalLog.NAME));
  }

  LiveRows liveRows() {
    return new LiveRows(library.kernel(LiveRows.NAME));
  }
}

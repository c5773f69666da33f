package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import java.lang.foreign.Arena;

/**
 * Lets a kernel write to an address that is not there, and prints what the next calls say. A fault
 * ends the context of the whole process, so the test runs this as a process of its own.
 */
final class FaultProgram {
  private FaultProgram() {}

  public static void main(String[] arguments) {
    CudaContext context = CudaContext.primary(CudaDriver.load(), 0);
    CudaStream stream = CudaStream.create(context);
    CudaLibrary library = CudaLibrary.load(context, "ramp", RampKernel.PTX);
    try (Arena arena = Arena.ofConfined()) {
      PreparedLaunch launch =
          library.kernel(RampKernel.SYMBOL).prepare(arena, LaunchShape.of(32, 0));
      launch.setLong(0, 0x10);
      launch.setInt(1, 32);
      launch.launch(stream, 1, 1, 1);
      say(stream::synchronize);
      say(stream::synchronize);
      say(() -> launch.launch(stream, 1, 1, 1));
    }
    library.close();
    stream.close();
    context.close();
    System.out.println("closed");
  }

  private static void say(Runnable call) {
    try {
      call.run();
      System.out.println("no error");
    } catch (BifocalException e) {
      System.out.println(e.code() + " " + e.getMessage());
    }
  }
}

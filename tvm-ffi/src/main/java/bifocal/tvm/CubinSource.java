package bifocal.tvm;

/** Where the machine code of kernels comes from that a module asks for while it runs. */
@FunctionalInterface
public interface CubinSource {
  /**
   * The code of one kernel. Whatever is thrown becomes the cause of the failure of the call in
   * which the module asked.
   *
   * @param name a relative path, as the module writes it
   * @param sha256 of the code, in hexadecimal digits, as the module was compiled with
   */
  byte[] cubin(String name, String sha256);
}

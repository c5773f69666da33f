package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.tvm.ffi.CubinCallback;
import bifocal.tvm.ffi.LibraryLoader;
import bifocal.tvm.ffi.LibraryLoader.Library;
import bifocal.tvm.ffi.LibraryLoader.Visibility;
import io.vavr.Tuple;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A library of TVM-FFI functions. Its functions are its own: another module may export functions of
 * the same names.
 */
public final class TvmModule {
  private static final String FUNCTION = "__tvm_ffi_";
  private static final String METADATA = "__tvm_ffi__metadata_";

  /** How the runtime's own functions are called, in C and in C++. */
  private static final Seq<String> OF_THE_RUNTIME = Vector.of("TVMFFI", "_ZN3tvm3ffi");

  private final TvmRuntime runtime;
  private final Library library;
  private final LibrarySymbols symbols;

  private TvmModule(TvmRuntime runtime, Library library, LibrarySymbols symbols) {
    this.runtime = runtime;
    this.library = library;
    this.symbols = symbols;
  }

  static TvmModule open(TvmRuntime runtime, Path file) {
    if (!Files.isRegularFile(file)) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING, "module not found", file, "a file of that name");
    }
    LibrarySymbols symbols = LibrarySymbols.of(file);
    requireRuntimeFor(symbols, runtime, file);
    return new TvmModule(runtime, LibraryLoader.open(file, Visibility.OWN_LAZY), symbols);
  }

  /** A function that is missed only when it is called ends the process, so it is missed here. */
  private static void requireRuntimeFor(LibrarySymbols symbols, TvmRuntime runtime, Path file) {
    Seq<String> lacking =
        symbols
            .needed()
            .filter(name -> OF_THE_RUNTIME.exists(name::startsWith))
            .filter(name -> LibraryLoader.shared(name).isEmpty());
    if (!lacking.isEmpty()) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING,
              "module " + file + " needs functions of a newer runtime",
              "TVM-FFI " + runtime.version() + ", without " + lacking.mkString(", "),
              "the version that the module was made for")
          .withRemedy(
              "build the module and install the runtime from one version of apache-tvm-ffi");
    }
  }

  /** The file it was loaded from. */
  public Path file() {
    return library.file();
  }

  /** Names of the functions that it exports. */
  public Seq<String> functions() {
    return symbols
        .exported()
        .filter(name -> name.startsWith(FUNCTION) && !name.startsWith(FUNCTION + "_"))
        .map(name -> name.substring(FUNCTION.length()))
        .sorted();
  }

  /**
   * Names of the functions that it needs and that are nowhere in this process. A call that reaches
   * one of them ends the process: whoever made the module knows whether one can.
   */
  public Seq<String> unresolved() {
    return symbols
        .needed()
        .filter(name -> library.symbol(name).isEmpty() && LibraryLoader.shared(name).isEmpty())
        .sorted();
  }

  /** Whether it asks for the code of kernels while it runs, as some of FlashInfer's modules do. */
  public boolean asksForCubins() {
    return CubinCallback.askedBy(library);
  }

  /**
   * Answers the module from now on, on whatever thread it asks. If the source fails, the module is
   * given nothing. On the thread of the call the failure is the cause of the exception that the
   * caller gets; on a thread of the module's own it is lost, and only the module can say that it
   * got nothing.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if it does not ask
   */
  public void serveCubins(CubinSource source) {
    CubinCallback.register(
        library,
        new CubinCallback.Answer() {
          @Override
          public byte[] code(String name, String sha256) {
            return source.cubin(name, sha256);
          }

          @Override
          public void failed(Throwable thrown) {
            Failures.keep(thrown);
          }
        });
  }

  /**
   * A function, whatever its signature.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if the module exports none of the name
   */
  public ModuleFunction function(String name) {
    return library
        .symbol(FUNCTION + name)
        .map(address -> new ModuleFunction(runtime, label(name), address))
        .getOrElseThrow(() -> missing(name));
  }

  /**
   * A function of the signature that the caller was written for.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if the module exports none of the name or does
   *     not tell its signature, {@code SIGNATURE_MISMATCH} if the signature is another
   */
  public ModuleFunction function(String name, Signature wanted) {
    ModuleFunction function = function(name);
    Signature seen =
        signature(name)
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                            ErrorCode.NATIVE_MISSING,
                            label(name) + " does not tell its signature",
                            "no symbol " + METADATA + name,
                            wanted)
                        .withRemedy(
                            "compile the module with -DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"));
    if (!seen.equals(wanted)) {
      throw BifocalException.of(
              ErrorCode.SIGNATURE_MISMATCH, "signature of " + label(name), seen, wanted)
          .withRemedy("build the module from the version that its caller was written for");
    }
    return function;
  }

  /** Functions of the signatures that the caller was written for: all of them, or every reason. */
  public Validation<Seq<BifocalException>, Map<String, ModuleFunction>> functions(
      Map<String, Signature> wanted) {
    return Validation.sequence(
            wanted.map(
                entry ->
                    validated(entry._1, entry._2)
                        .map(function -> Tuple.of(entry._1, function))
                        .mapError(Vector::of)))
        .map(LinkedHashMap::ofEntries);
  }

  private Validation<BifocalException, ModuleFunction> validated(String name, Signature wanted) {
    try {
      return Validation.valid(function(name, wanted));
    } catch (BifocalException refused) {
      return Validation.invalid(refused);
    }
  }

  /**
   * The signature of a function, absent if the module was compiled without metadata.
   *
   * @throws BifocalException {@code MALFORMED_INPUT} if the metadata cannot be read
   */
  public Option<Signature> signature(String name) {
    return library
        .symbol(METADATA + name)
        .map(address -> new ModuleFunction(runtime, label(name) + " metadata", address).invoke())
        .map(
            metadata ->
                switch (metadata) {
                  case Any.Text(String json) -> Signature.ofMetadata(json);
                  default ->
                      throw BifocalException.of(
                          ErrorCode.MALFORMED_INPUT, "metadata of " + name, metadata, "a text");
                });
  }

  private String label(String name) {
    return "function " + name + " of " + library.file().getFileName();
  }

  private BifocalException missing(String name) {
    return BifocalException.of(
            ErrorCode.NATIVE_MISSING,
            "module " + library.file() + " found, but it lacks a function",
            name,
            "one of " + functions().mkString(", "))
        .withRemedy(NearestName.advice(name, functions()));
  }

  @Override
  public String toString() {
    return "module " + library.file();
  }
}

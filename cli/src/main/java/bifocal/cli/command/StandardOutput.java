package bifocal.cli.command;

import io.vavr.control.Option;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** A stream of results that remembers why it lost some; a reader that has left is no loss. */
final class StandardOutput extends PrintStream {
  private static final String READER_LEFT = "Broken pipe";

  private final Remembering sink;

  /** Results in UTF-8, whatever the locale. */
  StandardOutput(OutputStream to) {
    this(new Remembering(to));
  }

  private StandardOutput(Remembering sink) {
    super(new BufferedOutputStream(sink), true, StandardCharsets.UTF_8);
    this.sink = sink;
  }

  /** The standard output of this process. */
  static StandardOutput ofProcess() {
    return new StandardOutput(new FileOutputStream(FileDescriptor.out));
  }

  /** Why results were lost, absent when none were. */
  Option<String> loss() {
    flush();
    return sink.loss.filter(why -> !READER_LEFT.equals(why));
  }

  private static final class Remembering extends FilterOutputStream {
    private Option<String> loss = Option.none();

    Remembering(OutputStream to) {
      super(to);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      try {
        out.write(bytes, offset, length);
      } catch (IOException e) {
        loss = Option.some(String.valueOf(e.getMessage()));
        throw e;
      }
    }
  }
}

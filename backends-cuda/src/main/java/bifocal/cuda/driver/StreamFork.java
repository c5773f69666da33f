package bifocal.cuda.driver;

/**
 * A second queue beside a stream, for work that may run at the same time as the stream's own. It
 * begins where the stream is when {@link CudaStream#fork} is called; what the stream gets after
 * {@link #close} begins when both are done. While the stream records, the work becomes a branch of
 * its graph. Neither forking nor joining allocates.
 *
 * <p>It belongs to its stream, which gives it back.
 */
public final class StreamFork implements AutoCloseable {
  private final CudaStream stream;
  private final CudaStream queue;
  private final CudaEvent begun;
  private final CudaEvent done;

  private StreamFork(CudaStream stream, CudaStream queue, CudaEvent begun, CudaEvent done) {
    this.stream = stream;
    this.queue = queue;
    this.begun = begun;
    this.done = done;
  }

  static StreamFork beside(CudaStream stream) {
    CudaContext context = stream.context();
    CudaStream queue = CudaStream.create(context);
    try {
      CudaEvent begun = CudaEvent.create(context);
      try {
        return new StreamFork(stream, queue, begun, CudaEvent.create(context));
      } catch (RuntimeException failure) {
        CudaContext.closeSuppressed(begun, failure);
        throw failure;
      }
    } catch (RuntimeException failure) {
      CudaContext.closeSuppressed(queue, failure);
      throw failure;
    }
  }

  /** Lets the queue go on where the stream is. */
  StreamFork begin() {
    begun.record(stream);
    queue.waitFor(begun);
    return this;
  }

  /** The second queue. */
  public CudaStream queue() {
    return queue;
  }

  /**
   * Lets the stream wait for the queue.
   *
   * @throws bifocal.core.error.BifocalException {@code NATIVE_FAILED}, {@code DEVICE_LOST}; the
   *     queue is empty then
   */
  @Override
  public void close() {
    try {
      done.record(queue);
      stream.waitFor(done);
    } catch (RuntimeException failure) {
      // Nothing on the device waits for the queue now, so the host does.
      Closing.after(failure).then(queue::synchronize).end();
    }
  }

  /** Gives queue and events back, when the device is done with them. */
  void release() {
    new Closing().then(queue::close).then(begun::close).then(done::close).end();
  }
}

package bifocal.conformance;

/**
 * The whole contract of a backend. Extend it, name the backend, and run it in the backend's own
 * build:
 *
 * <pre>{@code
 * class MyBackendTest extends AttentionBackendContract {
 *   @Override
 *   public AttentionBackend<?> backend() {
 *     return new MyBackend();
 *   }
 * }
 * }</pre>
 *
 * <p>The declared capabilities decide what is tested: all of them must run and agree with the
 * reference, and what is not among them must be refused. Random cases run over a fixed list of
 * seeds; {@code -Dbifocal.seed=N} runs one seed alone, {@code -Dbifocal.conformance.scale=N} runs N
 * times as many.
 */
public abstract class AttentionBackendContract
    implements NumbersContract,
        MaskContract,
        SequenceContract,
        CacheContract,
        RefusalContract,
        CapabilityContract,
        ValidationContract {}

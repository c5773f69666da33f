/**
 * The contract of a backend as tests: whoever brings a backend or a composite extends {@link
 * bifocal.conformance.AttentionBackendContract} in its own build.
 */
@NullMarked
package bifocal.conformance;

import org.jspecify.annotations.NullMarked;

package bifocal.core.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * One backend that was considered.
 *
 * @param priority its place in the platform's list, from 1; absent beside the list
 * @param reasons everything against it, empty when valid
 * @param hint what would have to change, or what is worth knowing of a valid one
 */
public record Candidate(
    BackendName backend,
    Option<Integer> priority,
    boolean valid,
    Seq<InvalidReason> reasons,
    Option<String> hint) {}

package bifocal.core.select;

import bifocal.core.backend.BackendName;
import io.vavr.collection.Seq;

/**
 * One printed list of candidates.
 *
 * @param attention {@code standard} or {@code mla}
 * @param devices where it holds, as the reference writes it
 * @param condition when it holds, empty when always
 * @param order candidates, first choice first
 */
public record PriorityList(
    String attention, String devices, String condition, Seq<BackendName> order) {}

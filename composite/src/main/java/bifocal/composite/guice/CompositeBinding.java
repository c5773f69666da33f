package bifocal.composite.guice;

import bifocal.composite.CompositeLimits;
import bifocal.core.backend.BackendName;
import bifocal.core.route.RoutingPolicy;

/**
 * A composite to be made once all backends are known.
 *
 * @param name name of the composite
 * @param childA name of the general child, which may be a composite too
 * @param childB name of the fast child, which may be a composite too
 * @param policy what routes between them
 * @param limits what the composite claims at most
 */
public record CompositeBinding(
    BackendName name,
    BackendName childA,
    BackendName childB,
    RoutingPolicy policy,
    CompositeLimits limits) {}

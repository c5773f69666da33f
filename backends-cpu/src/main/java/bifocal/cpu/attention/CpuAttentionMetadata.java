package bifocal.cpu.attention;

import bifocal.core.backend.AttentionMetadata;

/** One step's batch as the CPU backends' kernels want it. */
public sealed interface CpuAttentionMetadata extends AttentionMetadata permits StepPlan {}

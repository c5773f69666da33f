// SPDX-License-Identifier: Apache-2.0
// Joins partial results: softmax over the log-sum-exps weighs the partial outputs.

static void merge_row(const bifocal_cpu_params *p, const bifocal_cpu_merge_item *it, int row, int group) {
    const int64_t size = p->cache.head_size_v;
    const int64_t rows = (int64_t)it->query_count * group;
    const int head = it->kv_head * group + row % group;
    const int64_t token = (int64_t)it->query_first + row / group;
    const float *lse = p->partial_lse + it->partial_row + row;
    const float *out = p->partial_out + (it->partial_row + row) * size;
    float highest = p->sinks ? p->sinks[head] : -INFINITY;
    for (int s = 0; s < it->splits; s++) {
        const float x = lse[s * rows];
        highest = x > highest && x != INFINITY ? x : highest;
    }
    const float base = highest == -INFINITY ? 0 : highest;
    float sum = p->sinks ? expf(p->sinks[head] - base) : 0;
    for (int s = 0; s < it->splits; s++) {
        sum += lse[s * rows] == INFINITY ? 0 : expf(lse[s * rows] - base);
    }
    char *to = (char *)p->out + (token * p->out_token_stride + head * size) * element_bytes(p->out_dtype);
    for (int64_t d = 0; d < size; d += 64) {
        float o[64] = {0};
        const int64_t n = size - d < 64 ? size - d : 64;
        for (int s = 0; s < it->splits; s++) {
            const float x = lse[s * rows];
            // A part without keys has no output, whatever its memory holds.
            if (x == -INFINITY || x == INFINITY) {
                continue;
            }
            const float weight = expf(x - base) / sum;
            const float *from = out + s * rows * size + d;
            for (int64_t i = 0; i < n; i++) {
                o[i] += weight * from[i];
            }
        }
        from_floats(p->out_dtype, o, n, 1, to + d * element_bytes(p->out_dtype));
    }
    if (p->lse) {
        p->lse[token * p->lse_token_stride + head] = sum != 0 ? base + logf(sum) : -INFINITY;
    }
}

static void merge(const bifocal_cpu_params *p, const bifocal_cpu_merge_item *items, int64_t count) {
    const int group = p->num_q_heads / p->cache.num_kv_heads;
    for (int64_t n = 0; n < count; n++) {
        for (int row = 0; row < items[n].query_count * group; row++) {
            merge_row(p, items + n, row, group);
        }
    }
}

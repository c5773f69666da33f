"""Paged prefill for Hopper: one producer warp feeds two consumer warp groups through shared memory.

The producer walks the block table and copies key and value tiles with the tensor memory accelerator (one tensor map
for the key cache, one for the value cache, each seen as [block, slot, head, dim] whatever its layout in memory). The
consumers run both matrix products on the warp-group tensor cores and overlap the scores of one key tile with the
values of the tile before. The grid is persistent: a program works through several (tile, head) pairs, so the
producer is already loading the next pair's keys while the consumers finish this one.

Head sizes up to 256: a program has 128 rows, each consumer owns 64 of them. Head size 512: 64 rows, both consumers
compute the scores and each owns half of the head of the output, since one warp group cannot hold all of it.

Tiles, masks and numbers are those of attention.py.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (async_copy, fence_async_shared, mbarrier, tma,
                                                              warpgroup_mma, warpgroup_mma_wait)

LOG2_E = gl.constexpr(1.4426950408889634)
LN_2 = gl.constexpr(0.6931471805599453)

# Columns of a tensor map's box: 128 bytes, one swizzle span.
SPAN = 64
SPAN_COLUMNS = gl.constexpr(SPAN)


def box(block_size, block_n):
    """Rows and columns that one copy moves."""
    return min(block_size, block_n), SPAN


def box_layout():
    """The shared-memory layout of one copy."""
    return gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)


@gluon.jit
def _tile(turn, tiles, num_tiles, num_kv_heads, tiles_per_unit):
    """What this program's next (tile, head) pair is about; no tokens say that there is nothing to do.

    Work is dealt in units of tiles_per_unit neighbours of the list and one head. Two is meant for long lists, with a
    tile that sees many keys next to one of the same run that sees few: units then cost the same, and the programs can
    stay close together in the list, where they read the same keys. Every second round is dealt backwards, so that
    lists in order of falling cost even out too."""
    program = gl.program_id(0)
    programs = gl.num_programs(0)
    round = turn // tiles_per_unit
    dealt = round * programs + gl.where(round % 2 == 0, program, programs - 1 - program)
    unit = gl.minimum(dealt, num_tiles // tiles_per_unit * num_kv_heads - 1)
    fields = tiles + (unit // num_kv_heads * tiles_per_unit + turn % tiles_per_unit) * 8
    tokens = gl.where(dealt == unit, gl.load(fields + 1), 0)
    return (tokens, unit % num_kv_heads, gl.load(fields), gl.load(fields + 2), gl.load(fields + 3),
            gl.load(fields + 4), gl.load(fields + 5), gl.load(fields + 6))


@gluon.jit
def _deals(num_tiles, num_kv_heads, tiles_per_unit):
    """How often each program asks _tile."""
    units = num_tiles // tiles_per_unit * num_kv_heads
    return gl.cdiv(units, gl.num_programs(0)) * tiles_per_unit


@gluon.jit
def _interval(local, first, position, key_len, left_window, right_window, key_low, key_high,
              GENERAL: gl.constexpr):
    """The inclusive key interval of query tokens given by their index in the tile."""
    if GENERAL:
        token = (first + local).to(gl.int64)
        low = gl.maximum(gl.load(key_low + token), 0)
        high = gl.minimum(gl.load(key_high + token), key_len - 1)
    else:
        at = position + local
        low = gl.where(left_window < 0, 0, gl.maximum(at - left_window, 0))
        high = gl.where(right_window < 0, key_len - 1, gl.minimum(at + right_window, key_len - 1))
    return low, high


@gluon.jit
def _key_range(first, tokens, position, key_len, left_window, right_window, key_low, key_high,
               GENERAL: gl.constexpr, TOKENS_PADDED: gl.constexpr, BLOCK_N: gl.constexpr, WARPS: gl.constexpr):
    """First key (a multiple of BLOCK_N) and number of key tiles of a whole tile. Producer and consumers agree on it
    because they all compute it."""
    if GENERAL:
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])
        local = gl.minimum(gl.arange(0, TOKENS_PADDED, layout), tokens - 1)
        lows, highs = _interval(local, first, position, key_len, left_window, right_window, key_low, key_high, True)
        low = gl.min(lows, 0)
        high = gl.max(highs, 0)
    else:
        low, _high = _interval(0, first, position, key_len, left_window, right_window, key_low, key_high, False)
        _low, high = _interval(tokens - 1, first, position, key_len, left_window, right_window, key_low, key_high,
                               False)
    begin = gl.maximum(low, 0) // BLOCK_N * BLOCK_N
    steps = gl.maximum(high + BLOCK_N - begin, 0) // BLOCK_N
    return begin, steps


@gluon.jit
def _producer(k_map, v_map, k_smem, v_smem, k_full, k_empty, v_full, v_empty, tiles, key_low, key_high,
              block_table, block_table_stride, num_tiles, num_kv_heads, tiles_per_unit,
              GENERAL: gl.constexpr, GROUP: gl.constexpr, HEAD_PADDED: gl.constexpr, BLOCK_SIZE: gl.constexpr,
              BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr):
    ROWS: gl.constexpr = BLOCK_SIZE if BLOCK_SIZE < BLOCK_N else BLOCK_N
    PIECES: gl.constexpr = BLOCK_N // ROWS
    SPANS: gl.constexpr = HEAD_PADDED // SPAN_COLUMNS
    # The stage as the matrix product sees it is [BLOCK_N, HEAD_PADDED]; its memory is span by span, row by row.
    k_pieces = k_smem._reinterpret(k_map.dtype, [STAGES * SPANS * PIECES, 1, ROWS, 1, SPAN_COLUMNS], k_map.layout)
    v_pieces = v_smem._reinterpret(v_map.dtype, [STAGES * SPANS * PIECES, 1, ROWS, 1, SPAN_COLUMNS], v_map.layout)
    count = 0
    for deal in range(_deals(num_tiles, num_kv_heads, tiles_per_unit)):
        tokens, head, first, position, key_len, left_window, right_window, row = _tile(
            deal, tiles, num_tiles, num_kv_heads, tiles_per_unit)
        if tokens > 0:
            begin, steps = _key_range(first, tokens, position, key_len, left_window, right_window,
                                      key_low, key_high, GENERAL, _power(BLOCK_M // GROUP), BLOCK_N, 1)
            table = block_table + row.to(gl.int64) * block_table_stride
            last_block = gl.maximum(key_len - 1, 0) // BLOCK_SIZE
            for step in range(steps):
                start = begin + step * BLOCK_N
                stage = count % STAGES
                phase = (count // STAGES & 1) ^ 1
                mbarrier.wait(k_empty.index(stage), phase)
                mbarrier.expect(k_full.index(stage), BLOCK_N * HEAD_PADDED * 2)
                for piece in gl.static_range(PIECES):
                    key = start + piece * ROWS
                    # Past the end the last block is read once more; those keys are masked.
                    block = gl.load(table + gl.minimum(key // BLOCK_SIZE, last_block))
                    for span in gl.static_range(SPANS):
                        tma.async_copy_global_to_shared(
                            k_map, [block, key % BLOCK_SIZE, head, span * SPAN_COLUMNS], k_full.index(stage),
                            k_pieces.index((stage * SPANS + span) * PIECES + piece))
                mbarrier.wait(v_empty.index(stage), phase)
                mbarrier.expect(v_full.index(stage), BLOCK_N * HEAD_PADDED * 2)
                for piece in gl.static_range(PIECES):
                    key = start + piece * ROWS
                    block = gl.load(table + gl.minimum(key // BLOCK_SIZE, last_block))
                    for span in gl.static_range(SPANS):
                        tma.async_copy_global_to_shared(
                            v_map, [block, key % BLOCK_SIZE, head, span * SPAN_COLUMNS], v_full.index(stage),
                            v_pieces.index((stage * SPANS + span) * PIECES + piece))
                count += 1


@gluon.constexpr_function
def _power(n):
    power = 1
    while power < n:
        power *= 2
    return power


@gluon.constexpr_function
def _query_buffers(head_padded):
    return 2 if head_padded <= 128 else 1


@gluon.constexpr_function
def _rows_layout(columns):
    """Four warps over rows of 16-bit numbers, 16 bytes a thread."""
    across = min(columns // 8, 32)
    return gl.BlockedLayout([1, 8], [32 // across, across], [4, 1], [1, 0])


@gluon.jit
def _rows(first, tokens, kv_head, GROUP: gl.constexpr, ROW: gl.constexpr, LAYOUT: gl.constexpr):
    """Of 64 rows from ROW on: whether they stand for anything, their query token and their query head."""
    rows = ROW + gl.arange(0, 64, LAYOUT)
    local = rows // GROUP
    token = (first + gl.minimum(local, tokens - 1)).to(gl.int64)
    return local < tokens, token, kv_head * GROUP + rows % GROUP


@gluon.jit
def _load_query(q, q_smem, first, tokens, kv_head, q_stride_token, q_stride_head, GROUP: gl.constexpr,
                HEAD_SIZE: gl.constexpr, WIDTH: gl.constexpr, ROW: gl.constexpr, COLUMN: gl.constexpr,
                PARTIAL: gl.constexpr):
    """Starts copying 64 query rows to shared memory, where nobody may be reading any more."""
    if tokens > 0:
        layout: gl.constexpr = _rows_layout(WIDTH)
        columns = COLUMN + gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
        _valid, token, head = _rows(first, tokens, kv_head, GROUP, ROW, gl.SliceLayout(1, layout))
        offsets = token * q_stride_token + head * q_stride_head
        rows = q + offsets[:, None] + columns[None, :]
        if PARTIAL:
            async_copy.async_copy_global_to_shared(q_smem, rows, mask=columns[None, :] < HEAD_SIZE)
        else:
            async_copy.async_copy_global_to_shared(q_smem, rows)
    async_copy.commit_group()


@gluon.jit
def _shrink(m):
    """As in attention.py: the power of two that brings a row's maximum below 2^28, 1 for what is there already."""
    exponent = (m.to(gl.int32, bitcast=True) >> 23) & 0xFF
    return ((281 - gl.maximum(exponent, 154)) << 23).to(gl.float32, bitcast=True)


@gluon.jit
def _softmax(s, m, l, start, low, high, inner_low, inner_high, at, slope, scale, softcap,
             SOFTCAP: gl.constexpr, ALIBI: gl.constexpr, BLOCK_N: gl.constexpr, LAYOUT: gl.constexpr):
    """Folds a score tile into the running maximum and sum; returns the weights and the factor for what came before."""
    keys = start + gl.arange(0, BLOCK_N, gl.SliceLayout(0, LAYOUT))
    if SOFTCAP:
        s = 1.0 - 2.0 / (gl.exp2(s * (scale / softcap * (2.0 * LOG2_E))) + 1.0)
        s = s * (softcap * LOG2_E)
    if ALIBI:
        if not SOFTCAP:
            s = s * (scale * LOG2_E)
        s = s + slope[:, None] * (keys[None, :] - at[:, None]).to(gl.float32) * LOG2_E
    if SOFTCAP or ALIBI:
        to_log2 = 1.0
    else:
        to_log2 = scale * LOG2_E
    if (start < inner_low) | (start + BLOCK_N - 1 > inner_high):
        s = gl.where((keys[None, :] >= low[:, None]) & (keys[None, :] <= high[:, None]), s, float("-inf"))
    m_new = gl.maximum(m, gl.max(s, 1) * to_log2)
    m_finite = gl.where(m_new == float("-inf"), 0.0, m_new)
    if SOFTCAP or ALIBI:
        p = gl.exp2(s - m_finite[:, None])
    else:
        shrink = _shrink(m_finite)
        p = gl.exp2(s * (to_log2 * shrink)[:, None] - (m_finite * shrink)[:, None])
    alpha = gl.exp2(m - m_finite)
    l = l * alpha + gl.sum(p, 1)
    return p, m_new, l, alpha


@gluon.jit
def _consumer(q, q_smem, q_full, q_empty, k_smem, v_smem, k_full, k_empty, v_full, v_empty, out, lse, tiles,
              key_low, key_high, sinks, alibi_slopes, softmax_scale, softcap,
              q_stride_token, q_stride_head, out_stride_token, out_stride_head, lse_stride_token, lse_stride_head,
              write_lse, has_sinks, num_tiles, num_kv_heads, tiles_per_unit,
              GENERAL: gl.constexpr, SOFTCAP: gl.constexpr, ALIBI: gl.constexpr, GROUP: gl.constexpr,
              HEAD_SIZE: gl.constexpr, HEAD_PADDED: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
              STAGES: gl.constexpr, INDEX: gl.constexpr):
    # Whole rows each, or (head size 512) the same rows and half of the head each.
    HALVES: gl.constexpr = BLOCK_M == 64
    WIDTH: gl.constexpr = HEAD_PADDED // 2 if HALVES else HEAD_PADDED
    COLUMN: gl.constexpr = INDEX * WIDTH if HALVES else 0
    ROW: gl.constexpr = 0 if HALVES else INDEX * 64
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    values: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    weights: gl.constexpr = gl.DotOperandLayout(0, values, 2)
    by_row: gl.constexpr = gl.SliceLayout(1, scores)
    dtype: gl.constexpr = q.dtype.element_ty
    count = 0
    turn = 0
    copying: gl.constexpr = _rows_layout(WIDTH)
    # Two query buffers a consumer where they fit: the next query then arrives during this one's whole loop.
    AHEAD: gl.constexpr = _query_buffers(HEAD_PADDED) == 2
    if HALVES:
        q_mine = q_smem.slice(COLUMN, WIDTH, dim=1)
    elif AHEAD:
        q_mine = q_smem.index(INDEX * 2)
    else:
        q_mine = q_smem.index(INDEX)
    PARTIAL: gl.constexpr = HEAD_SIZE != HEAD_PADDED
    tokens, kv_head, first, position, key_len, left_window, right_window, row = _tile(
        0, tiles, num_tiles, num_kv_heads, tiles_per_unit)
    _load_query(q, q_mine, first, tokens, kv_head, q_stride_token, q_stride_head, GROUP, HEAD_SIZE, WIDTH, ROW,
                COLUMN, PARTIAL)
    for deal in range(_deals(num_tiles, num_kv_heads, tiles_per_unit)):
        # The pair after this one, so that its query can be on its way before this one's output is.
        next_tokens, next_head, next_first, next_position, next_len, next_left, next_right, next_row = _tile(
            deal + 1, tiles, num_tiles, num_kv_heads, tiles_per_unit)
        if tokens > 0:
            begin, steps = _key_range(first, tokens, position, key_len, left_window, right_window,
                                      key_low, key_high, GENERAL, _power(BLOCK_M // GROUP), BLOCK_N, 4)
            local = gl.minimum((ROW + gl.arange(0, 64, by_row)) // GROUP, tokens - 1)
            low, high = _interval(local, first, position, key_len, left_window, right_window, key_low, key_high,
                                  GENERAL)
            inner_low = gl.max(low, 0)
            inner_high = gl.min(high, 0)
            at = position + local
            valid, _token, head = _rows(first, tokens, kv_head, GROUP, ROW, by_row)
            if ALIBI:
                slope = gl.load(alibi_slopes + head, mask=valid, other=0.0)
            else:
                slope = gl.zeros([64], gl.float32, by_row)
            # Without a sink the softmax starts empty: maximum -inf, sum 0.
            m = gl.load(sinks + head, mask=valid & (has_sinks != 0), other=float("-inf")) * LOG2_E
            l = gl.where(m == float("-inf"), 0.0, 1.0)
            acc = gl.zeros([64, WIDTH], gl.float32, values)
            async_copy.wait_group(0)
            fence_async_shared()
            gl.thread_barrier()
            if HALVES:
                mbarrier.arrive(q_full, count=1)
                mbarrier.wait(q_full, turn & 1)
                q_all = q_smem
                q_next = q_mine
            elif AHEAD:
                q_all = q_smem.index(INDEX * 2 + (turn & 1))
                q_next = q_smem.index(INDEX * 2 + ((turn & 1) ^ 1))
                _load_query(q, q_next, next_first, next_tokens, next_head, q_stride_token, q_stride_head, GROUP,
                            HEAD_SIZE, WIDTH, ROW, COLUMN, PARTIAL)
            else:
                q_all = q_mine
                q_next = q_mine
            if steps > 0:
                stage = count % STAGES
                mbarrier.wait(k_full.index(stage), count // STAGES & 1)
                s = warpgroup_mma(q_all, k_smem.index(stage).permute((1, 0)),
                                  gl.zeros([64, BLOCK_N], gl.float32, scores), use_acc=False, is_async=True)
                s = warpgroup_mma_wait(0, deps=[s])
                mbarrier.arrive(k_empty.index(stage), count=1)
                p, m, l, alpha = _softmax(s, m, l, begin, low, high, inner_low, inner_high, at, slope,
                                          softmax_scale, softcap, SOFTCAP, ALIBI, BLOCK_N, scores)
                p16 = gl.convert_layout(p.to(dtype), weights)
                for step in range(1, steps):
                    stage = count % STAGES
                    phase = count // STAGES & 1
                    count += 1
                    next_stage = count % STAGES
                    mbarrier.wait(k_full.index(next_stage), count // STAGES & 1)
                    s_next = warpgroup_mma(q_all, k_smem.index(next_stage).permute((1, 0)),
                                           gl.zeros([64, BLOCK_N], gl.float32, scores), use_acc=False, is_async=True)
                    mbarrier.wait(v_full.index(stage), phase)
                    if HALVES:
                        v_tile = v_smem.index(stage).slice(COLUMN, WIDTH, dim=1)
                    else:
                        v_tile = v_smem.index(stage)
                    acc_next = warpgroup_mma(p16, v_tile, acc, is_async=True)
                    s = warpgroup_mma_wait(1, deps=[s_next])
                    mbarrier.arrive(k_empty.index(next_stage), count=1)
                    p, m, l, alpha = _softmax(s, m, l, begin + step * BLOCK_N, low, high, inner_low, inner_high, at,
                                              slope, softmax_scale, softcap, SOFTCAP, ALIBI, BLOCK_N, scores)
                    acc, _p = warpgroup_mma_wait(0, deps=[acc_next, p16])
                    mbarrier.arrive(v_empty.index(stage), count=1)
                    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, values))[:, None]
                    p16 = gl.convert_layout(p.to(dtype), weights)
                stage = count % STAGES
                mbarrier.wait(v_full.index(stage), count // STAGES & 1)
                if HALVES:
                    v_tile = v_smem.index(stage).slice(COLUMN, WIDTH, dim=1)
                else:
                    v_tile = v_smem.index(stage)
                acc_next = warpgroup_mma(p16, v_tile, acc, is_async=True)
                acc, _p = warpgroup_mma_wait(0, deps=[acc_next, p16])
                mbarrier.arrive(v_empty.index(stage), count=1)
                count += 1

            seen = l > 0.0
            inverse = gl.where(seen, 1.0 / gl.where(seen, l, 1.0), 0.0)
            result = (acc * gl.convert_layout(inverse, gl.SliceLayout(1, values))[:, None]).to(dtype)
            # Read again rather than kept: the loop above needs every register.
            tokens, kv_head, first, position, key_len, left_window, right_window, row = _tile(
                deal, tiles, num_tiles, num_kv_heads, tiles_per_unit)
            # Through the query's shared memory, which is free now, so that rows leave in whole lines.
            if HALVES:
                mbarrier.arrive(q_empty, count=1)
                mbarrier.wait(q_empty, turn & 1)
                staging = q_mine
            else:
                staging = q_all
            staging.store(result)
            lines = staging.load(copying)
            if not AHEAD:
                gl.thread_barrier()
                _load_query(q, q_next, next_first, next_tokens, next_head, q_stride_token, q_stride_head, GROUP,
                            HEAD_SIZE, WIDTH, ROW, COLUMN, PARTIAL)
            valid, token, head = _rows(first, tokens, kv_head, GROUP, ROW, gl.SliceLayout(1, copying))
            columns = COLUMN + gl.arange(0, WIDTH, gl.SliceLayout(0, copying))
            offsets = token * out_stride_token + head * out_stride_head
            gl.store(out + offsets[:, None] + columns[None, :], lines,
                     mask=valid[:, None] & (columns[None, :] < HEAD_SIZE))
            valid, token, head = _rows(first, tokens, kv_head, GROUP, ROW, by_row)
            lse_2 = gl.where(seen, m + gl.log2(gl.where(seen, l, 1.0)), float("-inf"))
            if not HALVES or INDEX == 0:
                gl.store(lse + token * lse_stride_token + head * lse_stride_head, lse_2 * LN_2,
                         mask=valid & (write_lse != 0))
            turn += 1
        else:
            if AHEAD:
                q_idle = q_smem.index(INDEX * 2 + (turn & 1))
            else:
                q_idle = q_mine
            gl.thread_barrier()
            _load_query(q, q_idle, next_first, next_tokens, next_head, q_stride_token, q_stride_head, GROUP,
                        HEAD_SIZE, WIDTH, ROW, COLUMN, PARTIAL)
        tokens, kv_head, first, position = next_tokens, next_head, next_first, next_position
        key_len, left_window, right_window = next_len, next_left, next_right


@gluon.jit
def hopper_attention(q, k_map, v_map, out, lse, tiles, key_low, key_high, block_table, sinks, alibi_slopes,
                     softmax_scale, softcap,
                     q_stride_token, q_stride_head, out_stride_token, out_stride_head,
                     lse_stride_token, lse_stride_head, block_table_stride,
                     write_lse, has_sinks, num_tiles, num_kv_heads, tiles_per_unit,
                     GENERAL: gl.constexpr, SOFTCAP: gl.constexpr, ALIBI: gl.constexpr, GROUP: gl.constexpr,
                     HEAD_SIZE: gl.constexpr, HEAD_PADDED: gl.constexpr, BLOCK_SIZE: gl.constexpr,
                     BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr):
    """Grid (programs): any number works, one per multiprocessor is meant."""
    dtype: gl.constexpr = q.dtype.element_ty
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    if BLOCK_M == 64:
        q_smem = gl.allocate_shared_memory(dtype, [64, HEAD_PADDED], shared)
    else:
        q_smem = gl.allocate_shared_memory(dtype, [2 * _query_buffers(HEAD_PADDED), 64, HEAD_PADDED], shared)
    k_smem = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, HEAD_PADDED], shared)
    v_smem = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, HEAD_PADDED], shared)
    q_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full, count=2)
    mbarrier.init(q_empty, count=2)
    for stage in gl.static_range(STAGES):
        mbarrier.init(k_full.index(stage), count=1)
        mbarrier.init(k_empty.index(stage), count=2)
        mbarrier.init(v_full.index(stage), count=1)
        mbarrier.init(v_empty.index(stage), count=2)
    fence_async_shared()
    gl.warp_specialize([
        (_consumer,
         (q, q_smem, q_full, q_empty, k_smem, v_smem, k_full, k_empty, v_full, v_empty, out, lse, tiles,
          key_low, key_high, sinks, alibi_slopes, softmax_scale, softcap,
          q_stride_token, q_stride_head, out_stride_token, out_stride_head, lse_stride_token, lse_stride_head,
          write_lse, has_sinks, num_tiles, num_kv_heads, tiles_per_unit,
          GENERAL, SOFTCAP, ALIBI, GROUP, HEAD_SIZE, HEAD_PADDED, BLOCK_M, BLOCK_N, STAGES, 0)),
        (_consumer,
         (q, q_smem, q_full, q_empty, k_smem, v_smem, k_full, k_empty, v_full, v_empty, out, lse, tiles,
          key_low, key_high, sinks, alibi_slopes, softmax_scale, softcap,
          q_stride_token, q_stride_head, out_stride_token, out_stride_head, lse_stride_token, lse_stride_head,
          write_lse, has_sinks, num_tiles, num_kv_heads, tiles_per_unit,
          GENERAL, SOFTCAP, ALIBI, GROUP, HEAD_SIZE, HEAD_PADDED, BLOCK_M, BLOCK_N, STAGES, 1)),
        (_producer,
         (k_map, v_map, k_smem, v_smem, k_full, k_empty, v_full, v_empty, tiles, key_low, key_high,
          block_table, block_table_stride, num_tiles, num_kv_heads, tiles_per_unit,
          GENERAL, GROUP, HEAD_PADDED, BLOCK_SIZE, BLOCK_M, BLOCK_N, STAGES)),
    ], [4, 1], [240, 24])

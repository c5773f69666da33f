// SPDX-License-Identifier: Apache-2.0
//
// The C interface of libbifocal_cpu.
//
// The library computes; it owns nothing. It makes no threads, allocates no memory, keeps no state between calls
// and stores no pointer that it was given. Scheduling, memory and threads belong to the caller. Every function may be
// called from any thread; two calls may run at once if they write different memory and use different scratch.
//
// The caller guarantees what the comments here say about sizes and bounds. The functions check what is cheap to
// check (parameter combinations) and report it as a negative code; they do not check addresses.
#ifndef BIFOCAL_CPU_H
#define BIFOCAL_CPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Grows by one whenever a struct, a constant or the meaning of a function changes.
#define BIFOCAL_CPU_ABI_VERSION 1

#if defined(BIFOCAL_CPU_BUILD)
#define BIFOCAL_CPU_API __attribute__((visibility("default")))
#else
#define BIFOCAL_CPU_API
#endif

// ------------------------------------------------------------------------------------------------ element types

enum {
    BIFOCAL_CPU_FLOAT32 = 0,
    BIFOCAL_CPU_FLOAT16 = 1,
    BIFOCAL_CPU_BFLOAT16 = 2,
    // The following are cache types only.
    BIFOCAL_CPU_FLOAT8_E4M3 = 3,           // finite values and NaN, largest 448
    BIFOCAL_CPU_FLOAT8_E5M2 = 4,           // IEEE-like, largest finite 57344
    BIFOCAL_CPU_INT8_PER_TOKEN_HEAD = 5,   // -127..127 times a scale for each token and head
    BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD = 6, // e4m3 times a scale for each token and head
};

// ------------------------------------------------------------------------------------------------------- results

enum {
    BIFOCAL_CPU_OK = 0,
    BIFOCAL_CPU_BAD_SIZE = -1,       // `size` is not sizeof the struct: library and caller disagree
    BIFOCAL_CPU_BAD_DTYPE = -2,      // unknown type, or a cache type used for queries or output
    BIFOCAL_CPU_BAD_HEAD_SIZE = -3,  // head size odd, below 2 or above 1024
    BIFOCAL_CPU_BAD_HEADS = -4,      // no heads, or query heads not a multiple of KV heads
    BIFOCAL_CPU_BAD_BLOCK_SIZE = -5, // not a positive multiple of 16
    BIFOCAL_CPU_BAD_POINTER = -6,    // a required pointer is null, or scratch is not aligned to 64 bytes
    BIFOCAL_CPU_BAD_ITEM = -7,       // negative count, head out of range, key range outside [0, key_len]
    BIFOCAL_CPU_BAD_ISA = -8,        // unknown name, or this CPU or operating system cannot run it
    BIFOCAL_CPU_BAD_NUMBER = -9,     // scale or softcap is not finite, or softcap is negative
};

// --------------------------------------------------------------------------------------------------- KV cache
//
// K and V live in blocks of `block_size` tokens (any multiple of 16). Block b of K starts at
// k_cache + b * k_block_stride bytes, and inside a block KV head h starts at h * k_head_stride bytes; V likewise.
// Dk and Dv are the head sizes of K and V, t a token's place in its block, d a head dimension. Element index from
// the start of one head's part of a block:
//
//   type                    K [block_size/16][...][16][x]                   V [block_size/x][Dv][x]
//   float32        (x = 1)  (t/16)*16*Dk + d*16 + t%16                      t*Dv + d
//   all others     (x = 2)  (t/16)*16*Dk + (d/2)*32 + (t%16)*2 + d%2        (t/2)*2*Dv + d*2 + t%2
//
// The per-token-head types keep their scales, one float for each token, behind the elements of the head:
// at byte block_size * Dk (K) or block_size * Dv (V) from the start of the head's part.
//
// Bytes of one head's part of a block: block_size * D * element size (+ 4 * block_size for per-token-head types);
// see bifocal_cpu_cache_head_bytes. A base and strides that are multiples of 64 are fastest, any that are multiples of
// 4 are allowed. Places of a block beyond key_len may hold anything, NaN included; they never reach a result. Values of keys before it that
// a row's mask hides are multiplied by zero, so those have to be finite.

typedef struct bifocal_cpu_cache {
    void *k;                // base of K, all blocks and heads
    void *v;                // base of V
    int64_t k_block_stride; // bytes
    int64_t v_block_stride; // bytes
    int64_t k_head_stride;  // bytes
    int64_t v_head_stride;  // bytes
    const float *k_scale;   // stored value * scale = value; null means 1; not used by per-token-head types
    const float *v_scale;   //
    int32_t scale_stride;   // 0: one scale for the tensor; 1: one for each KV head
    int32_t dtype;          // BIFOCAL_CPU_*
    int32_t num_kv_heads;
    int32_t block_size; // tokens, multiple of 16
    int32_t head_size_k;
    int32_t head_size_v;
} bifocal_cpu_cache;

// -------------------------------------------------------------------------------------------------- attention

// Everything that all work items of one forward call share.
typedef struct bifocal_cpu_params {
    int64_t size; // sizeof(bifocal_cpu_params)

    bifocal_cpu_cache cache; // read only here

    const void *q;            // [tokens][num_q_heads][head_size_k]
    void *out;                // [tokens][num_q_heads][head_size_v]
    float *lse;               // [tokens][num_q_heads] natural logarithm, sink included; null: not wanted
    int64_t q_token_stride;   // elements; the heads of one token are contiguous
    int64_t out_token_stride; // elements
    int64_t lse_token_stride; // elements

    const int32_t *block_table; // [requests][block_table_stride]
    int64_t block_table_stride; // elements

    const float *alibi_slopes; // [num_q_heads] or null
    const float *sinks;        // [num_q_heads] or null: a logit that joins the softmax and has no value

    // Visible keys per query token, both null or both given: query token t (row of q) sees the keys
    // key_first[t]..key_last[t], both inclusive, of those that exist (0..key_len-1). Empty if first > last.
    // Given, they replace the windows of the items.
    const int32_t *key_first;
    const int32_t *key_last;

    // Results of items that cover only a part of their keys (partial_row >= 0).
    float *partial_out; // [rows][head_size_v], normalised
    float *partial_lse; // [rows], natural logarithm, without the sink; -inf: no visible key

    int32_t q_dtype;   // FLOAT32, FLOAT16 or BFLOAT16
    int32_t out_dtype; // the q dtype or FLOAT32
    int32_t num_q_heads;
    float scale;   // x = scale * q.k
    float softcap; // x = softcap * tanh(x / softcap); 0: off
    int32_t reserved;
} bifocal_cpu_params;

// One piece of work: consecutive query tokens of one request, all query heads of one KV head, all or some of the
// keys. Items are independent of each other and may run in any order and on any thread.
//
// The query at position p (token i of the item: p = position + i) sees key k if
//   0 <= k < key_len   and   k >= p - left_window   and   k <= p + right_window
// where a window of -1 is unlimited. Causal is right_window 0; a sliding window of W keys is left_window W - 1.
// ALiBi adds slope * (k - p). Queries need not be keys of the request (encoder-decoder): position may be anything.
typedef struct bifocal_cpu_item {
    int32_t request;     // row of the block table
    int32_t kv_head;     //
    int32_t query_first; // row of q, out, lse, key_first
    int32_t query_count; // tokens; 0 does nothing
    int32_t position;    // of the first query
    int32_t key_len;     // keys that exist; only blocks that hold them (and are visible) are looked up and read
    int32_t left_window;
    int32_t right_window;
    int32_t key_begin; // of split KV: only keys in [key_begin, key_end), both multiples of 16 or equal to key_len;
    int32_t key_end;   // 0, key_len: all
    // -1: write out and lse. Otherwise write partial_out and partial_lse at this row: query token i and head g of
    // the group (query heads / KV heads) go to row partial_row + i * group + g.
    int64_t partial_row;
} bifocal_cpu_item;

// Joins the partial results of one (request, kv_head): split s of `splits` has its rows at
// partial_row + s * query_count * group. Adds the sink, writes out and lse.
typedef struct bifocal_cpu_merge_item {
    int64_t partial_row;
    int32_t kv_head;
    int32_t query_first;
    int32_t query_count;
    int32_t splits;
} bifocal_cpu_merge_item;

// Query tokens of one item that this instruction set works best with, for long queries. At least 1. An item with any
// query_count is correct; smaller ones read K and V more often.
BIFOCAL_CPU_API int32_t bifocal_cpu_query_tile(const bifocal_cpu_params *params);

// Bytes of scratch (aligned to 64) for items of at most query_count tokens. Negative: a code.
BIFOCAL_CPU_API int64_t bifocal_cpu_scratch_bytes(const bifocal_cpu_params *params, int32_t query_count);

// Computes items[0..count). Scratch is private to the call, and its contents need not survive.
BIFOCAL_CPU_API int32_t bifocal_cpu_attend(const bifocal_cpu_params *params, const bifocal_cpu_item *items,
                                           int64_t count, void *scratch);

// Merges items[0..count). Needs out, lse, sinks, partial_out, partial_lse and the head counts of params.
BIFOCAL_CPU_API int32_t bifocal_cpu_merge(const bifocal_cpu_params *params, const bifocal_cpu_merge_item *items,
                                          int64_t count);

// -------------------------------------------------------------------------------------------------- KV write

typedef struct bifocal_cpu_kv_write {
    int64_t size;            // sizeof(bifocal_cpu_kv_write)
    bifocal_cpu_cache cache; // written
    const void *k;           // [tokens][num_kv_heads][head_size_k]
    const void *v;           // [tokens][num_kv_heads][head_size_v]
    int64_t k_token_stride;  // elements; the heads of one token are contiguous
    int64_t v_token_stride;  // elements
    const int64_t *slots;    // [tokens] block * block_size + place in the block; negative: token is not stored
    int32_t dtype;           // of k and v: FLOAT32, FLOAT16 or BFLOAT16
    int32_t reserved;
} bifocal_cpu_kv_write;

// Stores tokens first..first+count-1 of one step, quantising as the cache's type asks: values are divided by the
// scale, rounded to nearest even and saturated; per-token-head scales are the largest magnitude / 127 (int8) or
// / 448 (float8). Calls for different tokens may run at once even if the tokens share a block.
BIFOCAL_CPU_API int32_t bifocal_cpu_write_kv(const bifocal_cpu_kv_write *params, int64_t first, int64_t count);

// Bytes of one KV head's part of a block for a head size, or a negative code.
BIFOCAL_CPU_API int64_t bifocal_cpu_cache_head_bytes(int32_t dtype, int32_t head_size, int32_t block_size);

// -------------------------------------------------------------------------------------------------- the library

BIFOCAL_CPU_API int32_t bifocal_cpu_abi_version(void);

// sizeof the structs, for the caller's check at load.
BIFOCAL_CPU_API int64_t bifocal_cpu_sizeof_params(void);
BIFOCAL_CPU_API int64_t bifocal_cpu_sizeof_item(void);
BIFOCAL_CPU_API int64_t bifocal_cpu_sizeof_merge_item(void);
BIFOCAL_CPU_API int64_t bifocal_cpu_sizeof_kv_write(void);

// Name of the instruction set in use: "amx", "avx512bf16", "avx512f", "avx2" or "portable". Chosen when the library is
// loaded: the best that the CPU and the operating system allow, or the one that the environment variable
// BIFOCAL_CPU_ISA names. A name there that cannot run is not replaced: every call then answers BIFOCAL_CPU_BAD_ISA,
// and this function "none".
BIFOCAL_CPU_API const char *bifocal_cpu_isa(void);

// Pins another instruction set for the whole process; not while other calls run. For tests and measurements.
BIFOCAL_CPU_API int32_t bifocal_cpu_select_isa(const char *name);

// 1: this build has it and it can run here; 0: this build has it, but CPU or operating system lack it;
// BIFOCAL_CPU_BAD_ISA: unknown here.
BIFOCAL_CPU_API int32_t bifocal_cpu_isa_available(const char *name);

// English text for a result code.
BIFOCAL_CPU_API const char *bifocal_cpu_error_text(int32_t code);

#ifdef __cplusplus
}
#endif

#endif

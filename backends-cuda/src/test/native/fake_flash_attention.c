/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for FlashAttention 4's forwards, for machines without a GPU: a function of the same arguments, over host
 * memory, that computes one number at a time. Compiled once for each kind: with -DCAUSAL, -DFULL or -DBOUNDS.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(BOUNDS)
#define NAME __tvm_ffi_bounds
#define ARGUMENTS 12
#elif defined(FULL)
#define NAME __tvm_ffi_full
#define ARGUMENTS 10
#else
#define NAME __tvm_ffi_causal
#define ARGUMENTS 10
#endif

typedef struct {
  int32_t type, length;
  union {
    int64_t number;
    double real;
    void *pointer;
  };
} any;

typedef struct {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} tensor;

enum { INT = 1, FLOAT = 3, LENT = 7, SIGNED = 0, REAL = 2, BRAIN = 4 };

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

static int raise(const char *message) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", message);
  return -1;
}

static float wide(const tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t *s = t->strides;
  int64_t at = a * s[0] + b * s[1] + c * s[2] + (t->ndim > 3 ? d * s[3] : 0);
  if (t->code == REAL) {
    return (float)((const _Float16 *)t->data)[at];
  }
  uint32_t bits = (uint32_t)((const uint16_t *)t->data)[at] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint16_t narrow(const tensor *t, float value) {
  if (t->code == REAL) {
    const _Float16 half = (_Float16)value;
    uint16_t same;
    memcpy(&same, &half, sizeof same);
    return same;
  }
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int is(const tensor *t, int ndim, int code, int bits) {
  return t->ndim == ndim && t->code == code && t->bits == bits && t->strides && !t->offset && t->device_type == 2;
}

static int32_t entry(const tensor *t, int64_t row, int64_t column) {
  return ((const int32_t *)t->data)[row * t->strides[0] + (t->ndim > 1 ? column * t->strides[1] : 0)];
}

__attribute__((visibility("default"))) int NAME(void *self, const any *args, int32_t count, any *result) {
  (void)self;
  result->type = 0;
  if (count != ARGUMENTS) {
    return raise("another number of arguments");
  }
  const tensor *t[10];
  for (int i = 0; i < 10; i++) {
    if (args[i].type != (i == 5 ? FLOAT : LENT)) {
      return raise("another kind of argument");
    }
    t[i] = args[i].pointer;
  }
  const tensor *q = t[0], *k = t[1], *v = t[2], *out = t[3], *sums = t[4];
  const int code = q->code == REAL ? REAL : BRAIN;
  if (!is(q, 3, code, 16) || !is(k, 4, code, 16) || !is(v, 4, code, 16) || !is(out, 3, code, 16) ||
      !is(sums, 2, REAL, 32) || !is(t[6], 1, SIGNED, 32) || !is(t[7], 1, SIGNED, 32) || !is(t[8], 1, SIGNED, 32) ||
      !is(t[9], 2, SIGNED, 32)) {
    return raise("another tensor");
  }
  int64_t runs = t[7]->shape[0], size = q->shape[2], heads = q->shape[1], page = k->shape[1];
  if (q->shape[0] != out->shape[0] || q->shape[0] != sums->shape[0] || t[6]->shape[0] != runs + 1 ||
      t[8]->shape[0] != runs || t[9]->shape[0] != runs) {
    return raise("sizes that differ");
  }
  int64_t left = INT64_MAX, right = 0;
#ifdef FULL
  right = INT32_MAX;
#endif
#ifdef BOUNDS
  left = args[10].number;
  right = args[11].number;
#endif
  double *scores = malloc(sizeof(double) * (size_t)(t[9]->shape[1] * page + 1)), *row = malloc(sizeof(double) * (size_t)size);
  for (int64_t run = 0; run < runs; run++) {
    int64_t first = entry(t[6], run, 0), used = entry(t[7], run, 0), keys = entry(t[8], run, 0);
    if (first + used > entry(t[6], run + 1, 0)) {
      return raise("rows of two runs");
    }
    for (int64_t token = 0; token < used; token++) {
      int64_t at = keys - used + token;
      int64_t low = at > left ? at - left : 0, high = at + right < keys ? at + right : keys - 1;
      for (int64_t head = 0; head < heads; head++) {
        int64_t of = head / (heads / k->shape[2]);
        double most = -INFINITY, sum = 0;
        for (int64_t key = low; key <= high; key++) {
          int64_t block = entry(t[9], run, key / page);
          double score = 0;
          for (int64_t d = 0; d < size; d++) {
            score += (double)wide(q, first + token, head, d, 0) * wide(k, block, key % page, of, d);
          }
          scores[key - low] = score * args[5].real;
          most = fmax(most, scores[key - low]);
        }
        memset(row, 0, sizeof(double) * (size_t)size);
        for (int64_t key = low; key <= high; key++) {
          int64_t block = entry(t[9], run, key / page);
          double weight = exp(scores[key - low] - most);
          sum += weight;
          for (int64_t d = 0; d < size; d++) {
            row[d] += weight * wide(v, block, key % page, of, d);
          }
        }
        for (int64_t d = 0; d < size; d++) {
          ((uint16_t *)out->data)[(first + token) * out->strides[0] + head * out->strides[1] + d] =
              narrow(out, (float)(row[d] / sum));
        }
        ((float *)sums->data)[(first + token) * sums->strides[0] + head] = (float)(most + log(sum));
      }
    }
  }
  free(scores);
  free(row);
  return 0;
}

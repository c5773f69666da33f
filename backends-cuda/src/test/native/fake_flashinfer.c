/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for FlashInfer's modules, for machines without a GPU: the same functions with the same arguments, over
 * host memory. It plans as they do, into the same lists at the places that the plan's numbers name, and computes one
 * number at a time from what lies on the "device". Compiled once for each kind: -DDECODE, -DFA2, -DFA3 or -DXQA, for
 * fp16 with -DHALF, for capped scores with -DCAP; with -DCUBINS a run asks for its kernel's code, with -DDRIFTED the schemas have one argument more.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
  int32_t type;
  int32_t length;
  union {
    int64_t number;
    double real;
    void *pointer;
  };
} any;

typedef struct {
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} tensor;

typedef struct {
  const char *data;
  size_t size;
} bytes;

enum { NONE = 0, INT = 1, BOOL = 2, FLOAT = 3, LENT = 7, OBJECT = 70, ARRAY = 71 };
enum { CPU = 1, CUDA = 2 };

int TVMFFIStringFromByteArray(const bytes *input, any *out);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFIFunctionGetGlobal(const bytes *name, void **out);
int TVMFFIFunctionCall(void *function, any *args, int32_t count, any *result);
int TVMFFIObjectDecRef(void *object);
void *TVMFFIEnvGetStream(int32_t type, int32_t id);

static int64_t plans, runs;
static void *last_stream;
static int fail_next;

static int raise(const char *kind, const char *message) {
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}

static const char *schema_of(char letter) {
  switch (letter) {
    case 'T': return "{\\\"type\\\":\\\"DLTensor*\\\"}";
    case 't': return "{\\\"type\\\":\\\"Optional\\\",\\\"args\\\":[{\\\"type\\\":\\\"DLTensor*\\\"}]}";
    case 'o': return "{\\\"type\\\":\\\"Optional\\\",\\\"args\\\":[{\\\"type\\\":\\\"ffi.Tensor\\\"}]}";
    case 'i': return "{\\\"type\\\":\\\"int\\\"}";
    case 'd': return "{\\\"type\\\":\\\"float\\\"}";
    case 'b': return "{\\\"type\\\":\\\"bool\\\"}";
    case 'A': return "{\\\"type\\\":\\\"ffi.Array\\\",\\\"args\\\":[{\\\"type\\\":\\\"int\\\"}]}";
    default: return "{\\\"type\\\":\\\"None\\\"}";
  }
}

/* A function's metadata: the result's letter first, then the parameters'. */
static int metadata(const char *letters, any *result) {
  static char text[8192];
  strcpy(text, "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\",\\\"args\\\":[");
  for (const char *at = letters; *at; at++) {
    strcat(text, at == letters ? "" : ",");
    strcat(text, schema_of(*at));
  }
#ifdef DRIFTED
  strcat(text, ",");
  strcat(text, schema_of('i'));
#endif
  strcat(text, "]}\"}");
  bytes whole = {text, strlen(text)};
  return TVMFFIStringFromByteArray(&whole, result);
}

static int fits(char letter, int32_t type) {
  switch (letter) {
    case 'T': return type == LENT || type == OBJECT;
    case 't': return type == NONE || type == LENT || type == OBJECT;
    case 'o': return type == NONE || type == OBJECT;
    case 'i': return type == INT || type == BOOL;
    case 'd': return type == FLOAT || type == INT;
    case 'b': return type == BOOL || type == INT;
    default: return type == ARRAY;
  }
}

#ifdef CUBINS
/* Asks for code before each run, as modules do whose kernels are not compiled in. */
static void (*ask)(const char *name, const char *sha256);
static _Thread_local int code_bytes;

EXPORT void FlashInferSetCubinCallback(void (*callback)(const char *, const char *)) { ask = callback; }

EXPORT void FlashInferSetCurrentCubin(const char *code, int bytes) { (void)code, code_bytes = bytes; }

static int ask_for(const char *name) {
  if (!strstr(name, "run")) return 0;
  ask("kernels/attention.cubin", "6923dd1bc0460082c5d55a831908c24a282860b7f1cd6c2b79cf1bc8857c639c");
  return code_bytes ? 0 : raise("RuntimeError", "Failed to load cubin for attention");
}
#endif

static int check(const char *name, const char *letters, const any *args, int32_t count) {
  char message[200];
  if (count != (int32_t)strlen(letters)) {
    snprintf(message, sizeof message, "%s takes %zu arguments, not %d", name, strlen(letters), count);
    return raise("TypeError", message);
  }
  for (int i = 0; i < count; i++) {
    if (!fits(letters[i], args[i].type)) {
      snprintf(message, sizeof message, "Mismatched type on argument #%d when calling `%s`: type %d", i, name, args[i].type);
      return raise("TypeError", message);
    }
    if (args[i].type == LENT) {
      tensor *t = args[i].pointer;
      if (t->ndim > 0 && (!t->strides || t->offset)) {
        return raise("ValueError", "a tensor without strides, or with an offset");
      }
    }
  }
  if (fail_next) {
    fail_next = 0;
    return raise("RuntimeError", "failed with error out of memory");
  }
  last_stream = TVMFFIEnvGetStream(CUDA, 0);
#ifdef CUBINS
  return ask_for(name);
#else
  return 0;
#endif
}

static tensor *of(const any *arg) { return arg->type == LENT ? arg->pointer : (tensor *)((char *)arg->pointer + 24); }

static int64_t element(const any *array, int index) { return (*(any **)((char *)array->pointer + 24))[index].number; }

static int give(const int64_t *numbers, int count, any *result) {
  static void *make;
  any values[16];
  bytes name = {"ffi.Array", 9};
  if (!make && TVMFFIFunctionGetGlobal(&name, &make)) {
    return -1;
  }
  memset(values, 0, sizeof values);
  for (int i = 0; i < count; i++) {
    values[i].type = INT;
    values[i].number = numbers[i];
  }
  return TVMFFIFunctionCall(make, values, count, result);
}

static float number(const tensor *t, int64_t at) {
#ifdef HALF
  return (float)((_Float16 *)t->data)[at];
#else
  uint32_t wide = (uint32_t)((uint16_t *)t->data)[at] << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
#endif
}

static void store(tensor *t, int64_t at, double value) {
#ifdef HALF
  ((_Float16 *)t->data)[at] = (_Float16)value;
#else
  float narrow = (float)value;
  uint32_t wide;
  memcpy(&wide, &narrow, 4);
  ((uint16_t *)t->data)[at] = (uint16_t)((wide + 0x7FFF + (wide >> 16 & 1)) >> 16);
#endif
}

/* A score under a cap, which only a module knows that was compiled for it. */
static double capped(double x, double cap) {
#ifdef CAP
  return cap * tanh(x / cap);
#else
  (void)cap;
  return x;
#endif
}

/* A cache and the layout of its blocks. */
typedef struct {
  tensor *k, *v;
  int heads_at, tokens_at;
  int64_t page;
} cache;

static cache cache_of(const any *k, const any *v, int64_t layout) {
  cache c = {of(k), of(v), layout == 1 ? 1 : 2, layout == 1 ? 2 : 1, 0};
  c.page = c.k->shape[c.tokens_at];
  return c;
}

/* One row of q over the keys of one list of pages: keys low..high. */
static void attend(const tensor *q, int64_t row, const cache *c, const int32_t *pages, int low, int high, double scale,
                   double cap, tensor *o, int64_t out_row, tensor *lse) {
  int64_t heads = q->shape[1], size = q->shape[2], group = heads / c->k->shape[c->heads_at];
  for (int64_t h = 0; h < heads; h++) {
    double most = -INFINITY, total = 0, sum[1024] = {0};
    for (int j = low; j <= high; j++) {
      int64_t block = pages[j / c->page] * c->k->strides[0] + j % c->page * c->k->strides[c->tokens_at] +
                      h / group * c->k->strides[c->heads_at];
      double x = 0;
      for (int64_t d = 0; d < size; d++) {
        x += (double)number(q, row * q->strides[0] + h * q->strides[1] + d) * number(c->k, block + d);
      }
      x = capped(x * scale, cap);
      double larger = x > most ? x : most, before = exp(most - larger), weight = exp(x - larger);
      total = total * before + weight;
      for (int64_t d = 0; d < size; d++) {
        sum[d] = sum[d] * before + weight * number(c->v, block + d);
      }
      most = larger;
    }
    for (int64_t d = 0; d < size; d++) {
      store(o, (out_row * heads + h) * size + d, total > 0 ? sum[d] / total : 0);
    }
    if (lse) {
      ((float *)lse->data)[out_row * heads + h] = (float)(total > 0 ? (most + log(total)) / log(2) : -INFINITY);
    }
  }
}

static int requires(int holds, const char *what) { return holds ? 0 : raise("ValueError", what); }

/* Lists in pinned memory, one behind the other. */
typedef struct {
  char *base;
  int64_t used, room;
} lists;

static int64_t take(lists *l, int64_t count) {
  int64_t at = (l->used + 15) / 16 * 16;
  l->used = at + count * 4;
  return at;
}

#define AT(base, offset) ((int32_t *)((char *)(base) + (offset)))

static int finish(lists *l, tensor *ints, const int64_t *plan, int count, any *result) {
  if (l->used > l->room) {
    return raise("RuntimeError", "Buffer overflow when allocating memory. Increase the workspace buffer size.");
  }
  memcpy(ints->data, l->base, l->used);
  plans++;
  return give(plan, count, result);
}

#ifdef DECODE
#define PLAN "TTTTiiiibidiiTT"
#define RUN "TTATTTTTTTtiibodddd"

EXPORT int __tvm_ffi_plan(void *self, const any *args, int32_t count, any *result) {
  (void)self;
  if (check("plan", PLAN, args, count)) return -1;
  tensor *ints = of(args + 1), *pinned = of(args + 2), *indptr = of(args + 3);
  int64_t batch = args[4].number;
  if (requires(ints->device_type == CUDA && pinned->device_type == CPU && indptr->device_type == CPU, "wrong devices") ||
      requires(indptr->shape[0] == batch + 1, "indptr is not of the batch")) {
    return -1;
  }
  lists l = {pinned->data, 0, ints->shape[0]};
  int64_t requests = take(&l, batch), tiles = take(&l, batch), o = take(&l, batch + 1), chunk = take(&l, 1);
  if (l.used <= l.room) {
    for (int i = 0; i < batch; i++) AT(l.base, requests)[i] = i;
  }
  int64_t plan[10] = {batch, 0, 0, requests, tiles, o, 0, chunk, args[8].number, 0};
  return finish(&l, ints, plan, 10, result);
}

EXPORT int __tvm_ffi_run(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)result;
  if (check("run", RUN, args, count)) return -1;
  cache c = cache_of(args + 4, args + 5, args[11].number);
  tensor *q = of(args + 3), *o = of(args + 9), *lse = args[10].type ? of(args + 10) : 0;
  int32_t *indptr = of(args + 6)->data, *pages = of(args + 7)->data, *last = of(args + 8)->data;
  int32_t *requests = AT(of(args + 1)->data, element(args + 2, 3));
  runs++;
  for (int b = 0; b < q->shape[0]; b++) {
    if (requests[b] != b) return raise("RuntimeError", "the plan was overwritten");
    int keys = (indptr[b + 1] - indptr[b] - 1) * (int)c.page + last[b];
    int left = (int)args[12].number;
    attend(q, b, &c, pages + indptr[b], left < 0 || keys - 1 - left < 0 ? 0 : keys - 1 - left, keys - 1, args[16].real, args[15].real, o, b,
           lse);
  }
  return 0;
}

EXPORT int __tvm_ffi__metadata_run(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n;
  return metadata("N" RUN, r);
}
#endif

#ifdef FA2
#define PLAN "TTTTTTiiiiibiibiibiib"
#define RUN "TTATTTTTTTTtiiibooooooooddddi"
enum { TILE = 4 };

EXPORT int __tvm_ffi_plan(void *self, const any *args, int32_t count, any *result) {
  (void)self;
  if (check("plan", PLAN, args, count)) return -1;
  tensor *ints = of(args + 1), *pinned = of(args + 2);
  int32_t *rows = of(args + 3)->data, *pages = of(args + 4)->data;
  int64_t batch = args[7].number, graph = args[11].number, tiles = 0;
  if (requires(of(args + 3)->shape[0] == batch + 1 && of(args + 4)->shape[0] == batch + 1 && of(args + 5)->shape[0] == batch,
               "arrays are not of the batch")) {
    return -1;
  }
  for (int i = 0; i < batch; i++) {
    if (requires(rows[i + 1] >= rows[i] && pages[i + 1] >= pages[i], "should be non-negative")) return -1;
    tiles += (rows[i + 1] - rows[i] + TILE - 1) / TILE;
  }
  if (requires(rows[0] == 0 && rows[batch] <= args[6].number, "more rows than there are")) return -1;
  int64_t padded = graph ? args[6].number : tiles;
  lists l = {pinned->data, 0, ints->shape[0]};
  int64_t requests = take(&l, padded), q_tiles = take(&l, padded), kv_tiles = take(&l, padded), o = take(&l, batch + 1);
  int64_t chunk = take(&l, 1), used = take(&l, 1), merge = take(&l, batch + 1);
  if (l.used <= l.room) {
    int t = 0;
    for (int i = 0; i < batch; i++) {
      for (int j = 0; j < (rows[i + 1] - rows[i] + TILE - 1) / TILE; j++) {
        AT(l.base, requests)[t] = i;
        AT(l.base, q_tiles)[t++] = j;
      }
    }
    *AT(l.base, used) = t;
    memcpy(AT(l.base, o), rows, (batch + 1) * 4);
    memcpy(AT(l.base, merge), rows, (batch + 1) * 4);
  }
  /* Keys are divided wherever they may be, so outputs lie as the merge puts them. */
  int64_t plan[15] = {padded, args[6].number, used, 16, requests, q_tiles, kv_tiles, merge, o, chunk, 0, 0, 0, graph,
                      !args[17].number};
  return finish(&l, ints, plan, 15, result);
}

EXPORT int __tvm_ffi_paged_run(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)result;
  if (check("paged_run", RUN, args, count)) return -1;
  cache c = cache_of(args + 4, args + 5, args[13].number);
  tensor *q = of(args + 3), *o = of(args + 10), *lse = args[11].type ? of(args + 11) : 0;
  int32_t *starts = of(args + 6)->data, *indptr = of(args + 7)->data, *pages = of(args + 8)->data, *last = of(args + 9)->data;
  void *ints = of(args + 1)->data;
  int64_t batch = of(args + 7)->shape[0] - 1;
  int tiles = *AT(ints, element(args + 2, 2));
  int32_t *base = AT(ints, element(args + 2, element(args + 2, 14) ? 7 : 8));
  if (requires(tiles >= 0 && tiles < 1 << 20, "the plan was overwritten")) return -1;
  runs++;
  for (int t = 0; t < tiles; t++) {
    int r = AT(ints, element(args + 2, 4))[t], first = AT(ints, element(args + 2, 5))[t] * TILE;
    if (requires(r >= 0 && r < batch, "the plan was overwritten")) return -1;
    int rows = starts[r + 1] - starts[r], keys = (indptr[r + 1] - indptr[r] - 1) * (int)c.page + last[r];
    for (int i = first; i < first + TILE && i < rows; i++) {
      int at = keys - rows + i, left = (int)args[14].number;
      attend(q, starts[r] + i, &c, pages + indptr[r], left < 0 || at - left < 0 ? 0 : at - left,
             args[12].number == 1 ? at : keys - 1, args[25].real, args[24].real, o, base[r] + i, lse);
    }
  }
  return 0;
}
#endif

#ifdef FA3
#define PLAN "TTTTTTiiiiibiibi"
#define RUN "TTATTTTTTTTtiiiboooodddi"
enum { TILE = 8 };

EXPORT int __tvm_ffi_plan(void *self, const any *args, int32_t count, any *result) {
  (void)self;
  if (check("plan", PLAN, args, count)) return -1;
  tensor *ints = of(args + 1), *pinned = of(args + 2);
  int32_t *rows = of(args + 3)->data, *pages = of(args + 4)->data, *keys = of(args + 5)->data;
  int64_t batch = args[7].number, works = 0;
  for (int i = 0; i < batch; i++) works += (rows[i + 1] - rows[i] + TILE - 1) / TILE;
  lists l = {pinned->data, 0, ints->shape[0]};
  int64_t plan[9];
  for (int i = 0; i < 6; i++) plan[i] = take(&l, works);
  plan[6] = take(&l, 2);
  plan[7] = take(&l, works);
  plan[8] = 0;
  if (l.used <= l.room) {
    int w = 0;
    for (int i = (int)batch - 1; i >= 0; i--) {
      for (int j = 0; j < (rows[i + 1] - rows[i] + TILE - 1) / TILE; j++, w++) {
        AT(l.base, plan[0])[w] = j;
        AT(l.base, plan[1])[w] = rows[i];
        AT(l.base, plan[2])[w] = pages[i];
        AT(l.base, plan[3])[w] = rows[i + 1] - rows[i];
        AT(l.base, plan[4])[w] = keys[i];
        AT(l.base, plan[7])[w] = i;
      }
    }
    AT(l.base, plan[6])[0] = w;
  }
  return finish(&l, ints, plan, 9, result);
}

EXPORT int __tvm_ffi_paged_run(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)result;
  if (check("paged_run", RUN, args, count)) return -1;
  cache c = cache_of(args + 4, args + 5, args[13].number);
  tensor *q = of(args + 3), *o = of(args + 10), *lse = args[11].type ? of(args + 11) : 0;
  int32_t *pages = of(args + 8)->data, *list[8];
  for (int i = 0; i < 8; i++) list[i] = AT(of(args + 1)->data, element(args + 2, i));
  if (requires(list[6][0] >= 0 && list[6][0] < 1 << 20, "the plan was overwritten")) return -1;
  runs++;
  for (int w = 0; w < list[6][0]; w++) {
    int rows = list[3][w], keys = list[4][w];
    for (int i = list[0][w] * TILE; i < (list[0][w] + 1) * TILE && i < rows; i++) {
      int at = keys - rows + i, left = (int)args[14].number, row = list[1][w] + i;
      attend(q, row, &c, pages + list[2][w], left < 0 || at - left < 0 ? 0 : at - left,
             args[12].number == 1 ? at : keys - 1, args[21].real, args[20].real, o, row, lse);
    }
  }
  return 0;
}
#endif

#ifdef XQA
#define RUN "biiidtTdTtTTttTiTidtittTTb"

/* Divides keys when there are fewer requests and heads than programs, as the kernel does: then counters are used. */
EXPORT int __tvm_ffi_xqa_wrapper(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)result;
  if (check("xqa_wrapper", RUN, args, count)) return -1;
  cache c = cache_of(args + 10, args + 11, 0);
  tensor *o = of(args + 6), *q = of(args + 8), *pages = of(args + 14), *keys = of(args + 16);
  tensor *counters = of(args + 23), *partials = of(args + 24);
  int64_t batch = args[17].number, heads = args[2].number, columns = args[15].number / c.page, window = args[3].number;
  int64_t size = q->shape[2], group = q->shape[1] / heads, programs = args[1].number / (batch * heads);
  if (requires(!args[0].number && !args[25].number, "kernels of another cache") ||
      requires(args[15].number % c.page == 0, "keys are not of whole pages") ||
      requires(q->shape[0] == batch && o->shape[0] == batch && keys->shape[0] >= batch, "arrays are not of the batch") ||
      requires(pages->shape[0] >= (batch - 1) * columns + 1, "rows of pages are not of the batch") ||
      requires(c.k->shape[2] == heads && c.k->strides[0] % size == 0, "heads of a page") ||
      requires(memcmp(c.k->strides, c.v->strides, 4 * sizeof(int64_t)) == 0, "strides of the values") ||
      requires(counters->shape[0] >= 4 * batch * heads, "too few counters") ||
      requires(programs < 2 || partials->shape[0] >= programs * batch * heads * (256 + group * size * 2), "too few partials")) {
    return -1;
  }
  for (int i = 0; i < batch * heads; i++) {
    if (requires(((uint32_t *)counters->data)[i] == 0, "counters are not zero")) return -1;
  }
  if (programs > 1) memset(partials->data, 0xFF, programs * batch * heads * (256 + group * size * 2));
  runs++;
  for (int b = 0; b < batch; b++) {
    int n = ((int32_t *)keys->data)[b];
    if (requires(n <= args[15].number, "more keys than a row has pages for")) return -1;
    attend(q, b, &c, (int32_t *)pages->data + b * columns, window > 0 && n > window ? n - (int)window : 0, n - 1,
           args[4].real / sqrt((double)size), 0, o, b, 0);
  }
  return 0;
}

EXPORT int __tvm_ffi__metadata_xqa_wrapper(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n;
  return metadata("N" RUN, r);
}
#else

#ifndef DECODE
EXPORT int __tvm_ffi__metadata_paged_run(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n;
  return metadata("N" RUN, r);
}
#endif

EXPORT int __tvm_ffi__metadata_plan(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n;
  return metadata("A" PLAN, r);
}
#endif

/* What was called so far: plans, runs, the stream of the last call. For tests. */
EXPORT int __tvm_ffi_calls(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n;
  int64_t numbers[3] = {plans, runs, (int64_t)last_stream};
  return give(numbers, 3, r);
}

/* Lets the next call of plan or run fail. For tests. */
EXPORT int __tvm_ffi_fail(void *s, const any *a, int32_t n, any *r) {
  (void)s, (void)a, (void)n, (void)r;
  fail_next = 1;
  return 0;
}

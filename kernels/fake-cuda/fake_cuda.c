/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for libcuda.so.1, for tests on machines without a GPU. Device memory is host memory,
 * streams run at once, kernels are only recorded. The functions whose names begin with fake_ script
 * failures and tell what was called and what is alive. See README.md.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNJOINED = 904,
  ILLEGAL_STATE = 401
};

enum {
  MOST_DEVICES = 8,
  MOST_STREAMS = 16,
  MOST_CALLS = 1 << 16,
  MOST_LAUNCHES = 1 << 14,
  MOST_PARAMETERS = 128
};

static const struct {
  int code;
  const char *name;
  const char *text;
  int sticky;
} ERRORS[] = {
    {0, "CUDA_SUCCESS", "no error", 0},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument", 0},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", 0},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error", 0},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected", 0},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal", 0},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid", 0},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context", 0},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device", 0},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered", 1},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle", 0},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state", 0},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found", 0},
    {600, "CUDA_ERROR_NOT_READY", "device not ready", 0},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered", 1},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered", 1},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address", 1},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", 1},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing", 0},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture", 0},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work", 0},
};

enum kind { CONTEXT, MEMORY, HOST, STREAM, EVENT, LIBRARY, GRAPH, EXEC, POOL, KINDS };
static const char *const KIND_NAMES[KINDS] = {"context", "memory",  "host",  "stream", "event",
                                              "library", "graph", "exec",  "pool"};

struct parameter {
  size_t offset;
  size_t bytes;
};

struct kernel {
  char name[256];
  struct library *library;
  int count;
  struct parameter parameters[MOST_PARAMETERS];
  int attributes[32];
  struct kernel *next;
};

struct library {
  struct kernel *kernels;
};

/* What of each stream's launches is done, by their number. */
struct order {
  long done[MOST_STREAMS];
};

struct launch {
  struct kernel *kernel;
  char name[256];
  unsigned geometry[7]; /* grid, block, shared */
  uint64_t stream;
  struct order after;
  int line; /* of its stream in orders */
  int replayed;
  unsigned attributes;
  uint32_t attribute_ids[8];
  uint8_t attribute_values[8][64];
  size_t bytes;
  uint8_t values[4096];
};

enum step_kind { STEP_LAUNCH, STEP_COPY, STEP_FILL, STEP_FILL_WORDS };

struct step {
  enum step_kind kind;
  struct launch launch;
  void *to;
  const void *from;
  size_t bytes;
  uint32_t value;
  struct step *next;
};

struct graph {
  struct step *first;
  struct step *last;
  size_t count;
};

struct stream {
  uint64_t context;
  int capturing; /* 1 recording, 2 invalidated */
  struct graph *graph;
  struct stream *origin; /* of a branch of a capture: the stream that began it */
  int unjoined;          /* whether the origin waits for less than the branch has */
  struct order order;
  int line;
};

struct event {
  long tick;
  struct order order;
  struct stream *recorded; /* the capturing stream that recorded it last, else NULL */
};

/* Memory that is kept for the next allocation: what is used, and what the device gave. */
struct pool {
  int device;
  size_t used;
  size_t reserved;
  size_t kept; /* most that stays reserved over a synchronisation */
};

/* Everything that was made and not destroyed. */
struct live {
  enum kind kind;
  void *object;
  size_t bytes;
  int device;
  struct pool *pool; /* of memory that came from one */
  struct live *next;
};

typedef void (*launch_observer)(const char *name, const unsigned *geometry, const void *values,
                                size_t bytes);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct live *alive;
static int device_count = 1;
static int capability_major = 9;
static int capability_minor = 0;
static int pools = 1;
static size_t memory_bytes = (size_t)1 << 30;
static size_t memory_used;
static int driver_version = 13000;
static uint64_t primary[MOST_DEVICES];
static int primary_references[MOST_DEVICES];
static long ticks;
static int lines;
static int sticky;
static int busy;
static long early;
static launch_observer observer;

static const char *calls[MOST_CALLS];
static long call_count;
static long fail_index = -1;
static char fail_symbol[128];
static long fail_nth;
static int fail_code;

static struct launch launches[MOST_LAUNCHES];
static long launch_count;

static __thread uint64_t current;

static struct live *find(enum kind kind, const void *object);

static int lock(void) {
  pthread_mutex_lock(&mutex);
  return 1;
}

static void unlock(int *held) {
  (void)held;
  pthread_mutex_unlock(&mutex);
}

static int is_sticky(int code) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
    if (ERRORS[i].code == code) {
      return ERRORS[i].sticky;
    }
  }
  return 0;
}

/* Notes a call, and tells the code that it is scripted to return. */
static int note(const char *symbol) {
  long index = call_count;
  if (call_count < MOST_CALLS) {
    calls[call_count++] = symbol;
  }
  int code = SUCCESS;
  if (index == fail_index) {
    code = fail_code;
  } else if (fail_nth > 0 && strcmp(symbol, fail_symbol) == 0 && --fail_nth == 0) {
    code = fail_code;
  }
  if (is_sticky(code)) {
    sticky = code;
  }
  return code;
}

#define LOCKED __attribute__((cleanup(unlock), unused)) int held_ = lock()

/* A function that needs no context. */
#define ENTER(symbol)            \
  LOCKED;                        \
  do {                           \
    int noted_ = note(#symbol);  \
    if (noted_) {                \
      return noted_;             \
    }                            \
  } while (0)

/* A function of a context: a lost one says so again and again. */
#define ENTER_CONTEXT(symbol)    \
  ENTER(symbol);                 \
  do {                           \
    if (sticky) {                \
      return sticky;             \
    }                            \
    if (!find(CONTEXT, (void *)current)) { \
      return INVALID_CONTEXT;    \
    }                            \
  } while (0)

/* A function that gives something back does so even when it is scripted to fail. */
#define ENTER_RELEASE(symbol)              \
  LOCKED;                                  \
  int scripted = note(#symbol);            \
  do {                                     \
    if (sticky) {                          \
      return sticky;                       \
    }                                      \
    if (!find(CONTEXT, (void *)current)) { \
      return INVALID_CONTEXT;              \
    }                                      \
  } while (0)

static struct live *find(enum kind kind, const void *object) {
  for (struct live *one = alive; one; one = one->next) {
    if (one->kind == kind && one->object == object) {
      return one;
    }
  }
  return NULL;
}

static void add(enum kind kind, void *object, size_t bytes, int device) {
  struct live *one = calloc(1, sizeof *one);
  one->kind = kind;
  one->object = object;
  one->bytes = bytes;
  one->device = device;
  one->next = alive;
  alive = one;
}

static void drop(enum kind kind, const void *object) {
  for (struct live **at = &alive; *at; at = &(*at)->next) {
    if ((*at)->kind == kind && (*at)->object == object) {
      struct live *gone = *at;
      *at = gone->next;
      free(gone);
      return;
    }
  }
}

/* Whether a range lies inside one block of the kind. */
static struct live *inside(enum kind kind, const void *start, size_t bytes) {
  for (struct live *one = alive; one; one = one->next) {
    const uint8_t *first = one->object;
    const uint8_t *asked = start;
    if (one->kind == kind && asked >= first && bytes <= one->bytes &&
        (size_t)(asked - first) <= one->bytes - bytes) {
      return one;
    }
  }
  return NULL;
}

static int current_device(void) {
  struct live *context = find(CONTEXT, (void *)current);
  return context ? context->device : -1;
}

static void free_graph(struct graph *graph) {
  struct step *step = graph->first;
  while (step) {
    struct step *next = step->next;
    free(step);
    step = next;
  }
  free(graph);
}

static void free_library(struct library *library) {
  struct kernel *kernel = library->kernels;
  while (kernel) {
    struct kernel *next = kernel->next;
    free(kernel);
    kernel = next;
  }
  free(library);
}

static void destroy(enum kind kind, void *object) {
  switch (kind) {
    case STREAM:
      if (((struct stream *)object)->graph && !((struct stream *)object)->origin) {
        free_graph(((struct stream *)object)->graph);
      }
      free(object);
      break;
    case LIBRARY:
      free_library(object);
      break;
    case GRAPH:
    case EXEC:
      free_graph(object);
      break;
    default:
      free(object);
  }
}

/* ---- control ---- */

EXPORT void fake_reset(void) {
  LOCKED;
  while (alive) {
    struct live *gone = alive;
    alive = gone->next;
    destroy(gone->kind, gone->object);
    free(gone);
  }
  device_count = 1;
  capability_major = 9;
  capability_minor = 0;
  pools = 1;
  memory_bytes = (size_t)1 << 30;
  memory_used = 0;
  memset(primary, 0, sizeof primary);
  memset(primary_references, 0, sizeof primary_references);
  ticks = 0;
  lines = 0;
  sticky = 0;
  busy = 0;
  early = 0;
  observer = NULL;
  call_count = 0;
  fail_index = -1;
  fail_nth = 0;
  launch_count = 0;
}

EXPORT void fake_devices(int count, int major, int minor, uint64_t bytes) {
  LOCKED;
  device_count = count;
  capability_major = major;
  capability_minor = minor;
  memory_bytes = bytes;
}

/* Whether the devices have memory pools. */
EXPORT void fake_pools(int on) {
  LOCKED;
  pools = on;
}

/* The call of this index, counted from the last reset, fails. -1 for none. */
EXPORT void fake_fail_at(int64_t index, int code) {
  LOCKED;
  fail_index = index;
  fail_code = code;
}

/* The nth call of a symbol from now on fails, counted from 1. */
EXPORT void fake_fail(const char *symbol, int64_t nth, int code) {
  LOCKED;
  snprintf(fail_symbol, sizeof fail_symbol, "%s", symbol);
  fail_nth = nth;
  fail_code = code;
}

/* While busy, queries say that the device is not ready; waiting for the context or a stream ends it. */
EXPORT void fake_busy(int on) {
  LOCKED;
  busy = on;
}

/* How often something that the device may be using was given back while it was busy. */
EXPORT int64_t fake_early(void) {
  LOCKED;
  return early;
}

EXPORT int64_t fake_calls(void) {
  LOCKED;
  return call_count;
}

EXPORT const char *fake_call(int64_t index) {
  LOCKED;
  return index >= 0 && index < call_count ? calls[index] : "";
}

/* How many things of a kind are alive; -1 for an unknown kind. */
EXPORT int64_t fake_live(const char *kind) {
  LOCKED;
  for (int k = 0; k < KINDS; k++) {
    if (strcmp(kind, KIND_NAMES[k]) == 0) {
      int64_t count = 0;
      for (struct live *one = alive; one; one = one->next) {
        count += one->kind == (enum kind)k;
      }
      return count;
    }
  }
  return -1;
}

EXPORT uint64_t fake_current_context(void) { return current; }

/* A context of the host's own, and a stream in it. */
EXPORT uint64_t fake_host_context(int device) {
  LOCKED;
  void *context = calloc(1, 16);
  add(CONTEXT, context, 0, device);
  return (uint64_t)context;
}

EXPORT uint64_t fake_host_stream(uint64_t context) {
  LOCKED;
  struct stream *stream = calloc(1, sizeof *stream);
  stream->context = context;
  stream->line = lines++ % MOST_STREAMS;
  add(STREAM, stream, 0, 0);
  return (uint64_t)stream;
}

/* What is told of every launch when it runs, on the thread that launched it; NULL for nobody. */
EXPORT void fake_observe(launch_observer seen) {
  LOCKED;
  observer = seen;
}

/* Whether one launch is over before another begins, whatever the device does. */
EXPORT int fake_ordered(int64_t first, int64_t second) {
  LOCKED;
  if (first < 0 || second < 0 || first >= launch_count || second >= launch_count) {
    return 0;
  }
  int line = launches[first].line;
  return first != second && launches[second].after.done[line] >= launches[first].after.done[line];
}

EXPORT int64_t fake_launches(void) {
  LOCKED;
  return launch_count;
}

EXPORT const char *fake_launch_name(int64_t index) { return launches[index].name; }

/* 0..2 grid, 3..5 block, 6 shared bytes, 7 stream, 8 replayed, 9 attributes, 10 parameter bytes */
EXPORT int64_t fake_launch_number(int64_t index, int which) {
  const struct launch *launch = &launches[index];
  switch (which) {
    case 7:
      return (int64_t)launch->stream;
    case 8:
      return launch->replayed;
    case 9:
      return launch->attributes;
    case 10:
      return (int64_t)launch->bytes;
    default:
      return launch->geometry[which];
  }
}

EXPORT const void *fake_launch_values(int64_t index) { return launches[index].values; }

/* First word of a launch attribute; -1 when it is not set. */
EXPORT int64_t fake_launch_attribute(int64_t index, uint32_t id) {
  const struct launch *launch = &launches[index];
  for (unsigned i = 0; i < launch->attributes; i++) {
    if (launch->attribute_ids[i] == id) {
      uint32_t word;
      memcpy(&word, launch->attribute_values[i], sizeof word);
      return word;
    }
  }
  return -1;
}

/* ---- the driver: errors, devices, contexts ---- */

EXPORT int cuGetErrorName(int code, const char **text) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
    if (ERRORS[i].code == code) {
      *text = ERRORS[i].name;
      return SUCCESS;
    }
  }
  *text = NULL;
  return INVALID_VALUE;
}

EXPORT int cuGetErrorString(int code, const char **text) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
    if (ERRORS[i].code == code) {
      *text = ERRORS[i].text;
      return SUCCESS;
    }
  }
  *text = NULL;
  return INVALID_VALUE;
}

EXPORT int cuInit(unsigned flags) {
  ENTER(cuInit);
  return flags ? INVALID_VALUE : SUCCESS;
}

EXPORT int cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion);
  *version = driver_version;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount);
  *count = device_count;
  return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
  ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= device_count) {
    return INVALID_DEVICE;
  }
  *device = ordinal;
  return SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int length, int device) {
  ENTER(cuDeviceGetName);
  snprintf(name, (size_t)length, "Fake device %d", device);
  return SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER(cuDeviceTotalMem_v2);
  (void)device;
  *bytes = memory_bytes;
  return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute);
  (void)device;
  switch (attribute) {
    case 16:
      *value = 132;
      return SUCCESS;
    case 75:
      *value = capability_major;
      return SUCCESS;
    case 76:
      *value = capability_minor;
      return SUCCESS;
    case 97:
      *value = 232448;
      return SUCCESS;
    case 115:
      *value = pools;
      return SUCCESS;
    default:
      return INVALID_VALUE;
  }
}

EXPORT int cuDevicePrimaryCtxRetain(uint64_t *context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (sticky) {
    return sticky;
  }
  if (primary_references[device]++ == 0) {
    void *made = calloc(1, 16);
    primary[device] = (uint64_t)made;
    add(CONTEXT, made, 0, device);
  }
  *context = primary[device];
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  LOCKED;
  int scripted = note("cuDevicePrimaryCtxRelease_v2");
  if (sticky) {
    return sticky;
  }
  if (primary_references[device] == 0) {
    return INVALID_CONTEXT;
  }
  if (--primary_references[device] == 0) {
    void *gone = (void *)primary[device];
    drop(CONTEXT, gone);
    free(gone);
  }
  return scripted;
}

EXPORT int cuCtxGetCurrent(uint64_t *context) {
  ENTER(cuCtxGetCurrent);
  *context = current;
  return SUCCESS;
}

EXPORT int cuCtxSetCurrent(uint64_t context) {
  ENTER(cuCtxSetCurrent);
  if (sticky) {
    return sticky;
  }
  if (context && !find(CONTEXT, (void *)context)) {
    return INVALID_CONTEXT;
  }
  current = context;
  return SUCCESS;
}

EXPORT int cuCtxGetDevice(int *device) {
  ENTER_CONTEXT(cuCtxGetDevice);
  *device = current_device();
  return SUCCESS;
}

/* ---- streams that record ---- */

static struct stream *stream_of(uint64_t handle) {
  return find(STREAM, (void *)handle) ? (struct stream *)handle : NULL;
}

/* Something that no capture may see happen while any stream records. */
static int unsafe_in_capture(void) {
  int hurt = 0;
  for (struct live *one = alive; one; one = one->next) {
    if (one->kind == STREAM && ((struct stream *)one->object)->capturing) {
      ((struct stream *)one->object)->capturing = 2;
      hurt = 1;
    }
  }
  return hurt ? CAPTURE_UNSUPPORTED : SUCCESS;
}

static void run(const struct step *step, int replayed) {
  switch (step->kind) {
    case STEP_LAUNCH:
      if (launch_count < MOST_LAUNCHES) {
        launches[launch_count] = step->launch;
        launches[launch_count].replayed = replayed;
        launch_count++;
      }
      if (observer) {
        observer(step->launch.name, step->launch.geometry, step->launch.values,
                 step->launch.bytes);
      }
      break;
    case STEP_COPY:
      memmove(step->to, step->from, step->bytes);
      break;
    case STEP_FILL:
      memset(step->to, (int)step->value, step->bytes);
      break;
    case STEP_FILL_WORDS:
      for (size_t i = 0; i < step->bytes / 4; i++) {
        ((uint32_t *)step->to)[i] = step->value;
      }
      break;
  }
}

/* Runs a step, or records it where the stream does. */
static int submit(uint64_t handle, const struct step *step) {
  struct stream *stream = stream_of(handle);
  if (!stream && handle) {
    return INVALID_HANDLE;
  }
  struct step *copy = malloc(sizeof *copy);
  *copy = *step;
  copy->next = NULL;
  if (stream) {
    stream->unjoined = 1;
    stream->order.done[stream->line]++;
    copy->launch.after = stream->order;
    copy->launch.line = stream->line;
  }
  if (!stream || !stream->capturing) {
    run(copy, 0);
    free(copy);
    return SUCCESS;
  }
  if (stream->capturing == 2) {
    free(copy);
    return CAPTURE_INVALIDATED;
  }
  struct graph *graph = stream->graph;
  if (graph->last) {
    graph->last->next = copy;
  } else {
    graph->first = copy;
  }
  graph->last = copy;
  graph->count++;
  return SUCCESS;
}

/* All work is done: pools give back what they need not keep. */
static void settle(void) {
  busy = 0;
  for (struct live *one = alive; one; one = one->next) {
    if (one->kind == POOL) {
      struct pool *pool = one->object;
      size_t stays = pool->used > pool->kept ? pool->used : pool->kept;
      if (pool->reserved > stays) {
        memory_used -= pool->reserved - stays;
        pool->reserved = stays;
      }
    }
  }
}

EXPORT int cuCtxSynchronize(void) {
  ENTER_CONTEXT(cuCtxSynchronize);
  int capture = unsafe_in_capture();
  if (!capture) {
    settle();
  }
  return capture;
}

EXPORT int cuStreamCreate(uint64_t *out, unsigned flags) {
  ENTER_CONTEXT(cuStreamCreate);
  (void)flags;
  struct stream *stream = calloc(1, sizeof *stream);
  stream->context = current;
  stream->line = lines++ % MOST_STREAMS;
  add(STREAM, stream, 0, current_device());
  *out = (uint64_t)stream;
  return SUCCESS;
}

EXPORT int cuStreamDestroy_v2(uint64_t handle) {
  ENTER_RELEASE(cuStreamDestroy_v2);
  early += busy;
  struct stream *stream = stream_of(handle);
  if (!stream) {
    return INVALID_HANDLE;
  }
  drop(STREAM, stream);
  destroy(STREAM, stream);
  return scripted;
}

EXPORT int cuStreamSynchronize(uint64_t handle) {
  ENTER_CONTEXT(cuStreamSynchronize);
  struct stream *stream = stream_of(handle);
  if (!stream && handle) {
    return INVALID_HANDLE;
  }
  if (stream && stream->capturing) {
    stream->capturing = 2;
    return CAPTURE_UNSUPPORTED;
  }
  settle();
  return SUCCESS;
}

EXPORT int cuStreamQuery(uint64_t handle) {
  ENTER_CONTEXT(cuStreamQuery);
  if (handle && !stream_of(handle)) {
    return INVALID_HANDLE;
  }
  return busy ? NOT_READY : SUCCESS;
}

EXPORT int cuStreamWaitEvent(uint64_t handle, uint64_t event, unsigned flags) {
  ENTER_CONTEXT(cuStreamWaitEvent);
  (void)flags;
  struct stream *stream = stream_of(handle);
  if ((handle && !stream) || !find(EVENT, (void *)event)) {
    return INVALID_HANDLE;
  }
  if (!stream) {
    return SUCCESS;
  }
  struct event *awaited = (struct event *)event;
  for (int i = 0; i < MOST_STREAMS; i++) {
    if (awaited->order.done[i] > stream->order.done[i]) {
      stream->order.done[i] = awaited->order.done[i];
    }
  }
  struct stream *from = awaited->recorded;
  if (from && from->capturing && from != stream) {
    if (from->origin == stream) {
      from->unjoined = awaited->order.done[from->line] < from->order.done[from->line];
    } else if (!stream->capturing) {
      /* What waits for a stream that records is recorded, too. */
      stream->origin = from->origin ? from->origin : from;
      stream->capturing = stream->origin->capturing;
      stream->graph = stream->origin->graph;
      stream->unjoined = 1;
    }
  }
  return SUCCESS;
}

EXPORT int cuStreamGetCtx(uint64_t handle, uint64_t *context) {
  ENTER_CONTEXT(cuStreamGetCtx);
  struct stream *stream = stream_of(handle);
  if (!stream && handle) {
    return INVALID_HANDLE;
  }
  *context = stream ? stream->context : current;
  return SUCCESS;
}

EXPORT int cuStreamIsCapturing(uint64_t handle, int *status) {
  ENTER_CONTEXT(cuStreamIsCapturing);
  struct stream *stream = stream_of(handle);
  if (!stream && handle) {
    return INVALID_HANDLE;
  }
  *status = stream ? stream->capturing : 0;
  return SUCCESS;
}

/* ---- events ---- */

EXPORT int cuEventCreate(uint64_t *out, unsigned flags) {
  ENTER_CONTEXT(cuEventCreate);
  (void)flags;
  struct event *event = calloc(1, sizeof *event);
  event->tick = -1;
  add(EVENT, event, 0, 0);
  *out = (uint64_t)event;
  return SUCCESS;
}

EXPORT int cuEventDestroy_v2(uint64_t handle) {
  ENTER_RELEASE(cuEventDestroy_v2);
  if (!find(EVENT, (void *)handle)) {
    return INVALID_HANDLE;
  }
  drop(EVENT, (void *)handle);
  free((void *)handle);
  return scripted;
}

EXPORT int cuEventRecord(uint64_t handle, uint64_t stream) {
  ENTER_CONTEXT(cuEventRecord);
  if (!find(EVENT, (void *)handle) || (stream && !stream_of(stream))) {
    return INVALID_HANDLE;
  }
  struct event *event = (struct event *)handle;
  struct stream *of = stream_of(stream);
  event->tick = ++ticks;
  event->recorded = of && of->capturing ? of : NULL;
  memset(&event->order, 0, sizeof event->order);
  if (of) {
    event->order = of->order;
  }
  return SUCCESS;
}

EXPORT int cuEventQuery(uint64_t handle) {
  ENTER_CONTEXT(cuEventQuery);
  if (!find(EVENT, (void *)handle)) {
    return INVALID_HANDLE;
  }
  return busy && ((struct event *)handle)->tick >= 0 ? NOT_READY : SUCCESS;
}

EXPORT int cuEventSynchronize(uint64_t handle) {
  ENTER_CONTEXT(cuEventSynchronize);
  return find(EVENT, (void *)handle) ? SUCCESS : INVALID_HANDLE;
}

/* Half a millisecond from one recorded event to the next. */
EXPORT int cuEventElapsedTime_v2(float *milliseconds, uint64_t start, uint64_t end) {
  ENTER_CONTEXT(cuEventElapsedTime_v2);
  if (!find(EVENT, (void *)start) || !find(EVENT, (void *)end)) {
    return INVALID_HANDLE;
  }
  if (((struct event *)start)->tick < 0 || ((struct event *)end)->tick < 0) {
    return INVALID_HANDLE;
  }
  *milliseconds = 0.5f * (float)(((struct event *)end)->tick - ((struct event *)start)->tick);
  return SUCCESS;
}

/* ---- memory ---- */

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER_CONTEXT(cuMemAlloc_v2);
  int capture = unsafe_in_capture();
  if (capture) {
    return capture;
  }
  if (bytes == 0) {
    return INVALID_VALUE;
  }
  if (bytes > memory_bytes - memory_used) {
    return OUT_OF_MEMORY;
  }
  void *block = aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (!block) {
    return OUT_OF_MEMORY;
  }
  memset(block, 0xA5, bytes); /* the content of new memory is unknown */
  memory_used += bytes;
  add(MEMORY, block, bytes, current_device());
  *address = (uint64_t)block;
  return SUCCESS;
}

/* What came from a pool stays reserved by it. */
static void release_memory(struct live *block) {
  if (block->pool) {
    block->pool->used -= block->bytes;
  } else {
    memory_used -= block->bytes;
  }
  void *address = block->object;
  drop(MEMORY, address);
  free(address);
}

EXPORT int cuMemFree_v2(uint64_t address) {
  ENTER_RELEASE(cuMemFree_v2);
  early += busy;
  struct live *block = find(MEMORY, (void *)address);
  if (!block) {
    return INVALID_VALUE;
  }
  release_memory(block);
  return scripted;
}

EXPORT int cuMemPoolCreate(uint64_t *out, const int *properties) {
  ENTER_CONTEXT(cuMemPoolCreate);
  /* pinned memory of a device, without a handle for other processes */
  if (properties[0] != 1 || properties[1] != 0 || properties[2] != 1 ||
      properties[3] >= device_count) {
    return INVALID_VALUE;
  }
  struct pool *pool = calloc(1, sizeof *pool);
  pool->device = properties[3];
  add(POOL, pool, 0, pool->device);
  *out = (uint64_t)pool;
  return SUCCESS;
}

EXPORT int cuMemPoolDestroy(uint64_t handle) {
  ENTER_RELEASE(cuMemPoolDestroy);
  struct pool *pool = (struct pool *)handle;
  if (!find(POOL, pool) || pool->used) {
    return INVALID_VALUE;
  }
  memory_used -= pool->reserved;
  drop(POOL, pool);
  free(pool);
  return scripted;
}

/* 4 what stays reserved, 5 what is reserved, 7 what is used */
EXPORT int cuMemPoolSetAttribute(uint64_t handle, int attribute, const uint64_t *value) {
  ENTER_CONTEXT(cuMemPoolSetAttribute);
  if (!find(POOL, (void *)handle) || attribute != 4) {
    return INVALID_VALUE;
  }
  ((struct pool *)handle)->kept = *value;
  return SUCCESS;
}

EXPORT int cuMemPoolGetAttribute(uint64_t handle, int attribute, uint64_t *value) {
  ENTER_CONTEXT(cuMemPoolGetAttribute);
  if (!find(POOL, (void *)handle) || (attribute != 5 && attribute != 7)) {
    return INVALID_VALUE;
  }
  *value = attribute == 5 ? ((struct pool *)handle)->reserved : ((struct pool *)handle)->used;
  return SUCCESS;
}

EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, uint64_t handle,
                                   uint64_t stream) {
  ENTER_CONTEXT(cuMemAllocFromPoolAsync);
  struct pool *pool = (struct pool *)handle;
  if (bytes == 0 || !find(POOL, pool) || (stream && !stream_of(stream))) {
    return INVALID_VALUE;
  }
  size_t used = pool->used + bytes;
  size_t more = used > pool->reserved ? used - pool->reserved : 0;
  if (more > memory_bytes - memory_used) {
    return OUT_OF_MEMORY;
  }
  void *block = aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (!block) {
    return OUT_OF_MEMORY;
  }
  memset(block, 0xA5, bytes);
  memory_used += more;
  pool->reserved += more;
  pool->used = used;
  add(MEMORY, block, bytes, current_device());
  alive->pool = pool;
  *address = (uint64_t)block;
  return SUCCESS;
}

/* In the order of the stream, so the device may be busy. */
EXPORT int cuMemFreeAsync(uint64_t address, uint64_t stream) {
  ENTER_RELEASE(cuMemFreeAsync);
  struct live *block = find(MEMORY, (void *)address);
  if (!block || !block->pool || (stream && !stream_of(stream))) {
    return INVALID_VALUE;
  }
  release_memory(block);
  return scripted;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER_CONTEXT(cuMemGetInfo_v2);
  *free_bytes = memory_bytes - memory_used;
  *total = memory_bytes;
  return SUCCESS;
}

EXPORT int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(cuMemHostAlloc);
  (void)flags;
  if (bytes == 0) {
    return INVALID_VALUE;
  }
  void *block = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!block) {
    return OUT_OF_MEMORY;
  }
  memset(block, 0xA5, bytes);
  add(HOST, block, bytes, 0);
  *address = block;
  return SUCCESS;
}

EXPORT int cuMemFreeHost(void *address) {
  ENTER_RELEASE(cuMemFreeHost);
  early += busy;
  if (!find(HOST, address)) {
    return INVALID_VALUE;
  }
  drop(HOST, address);
  free(address);
  return scripted;
}

EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  ENTER_CONTEXT(cuPointerGetAttribute);
  struct live *block = inside(MEMORY, (void *)address, 1);
  if (!block || attribute != 9) {
    return INVALID_VALUE;
  }
  *(int *)value = block->device;
  return SUCCESS;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, uint64_t stream) {
  ENTER_CONTEXT(cuMemcpyHtoDAsync_v2);
  if (!inside(MEMORY, (void *)to, bytes) || inside(MEMORY, from, 1)) {
    return INVALID_VALUE;
  }
  struct step step = {.kind = STEP_COPY, .to = (void *)to, .from = from, .bytes = bytes};
  return submit(stream, &step);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, uint64_t stream) {
  ENTER_CONTEXT(cuMemcpyDtoHAsync_v2);
  if (!inside(MEMORY, (void *)from, bytes) || inside(MEMORY, to, 1)) {
    return INVALID_VALUE;
  }
  struct step step = {.kind = STEP_COPY, .to = to, .from = (void *)from, .bytes = bytes};
  return submit(stream, &step);
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, uint64_t stream) {
  ENTER_CONTEXT(cuMemcpyDtoDAsync_v2);
  if (!inside(MEMORY, (void *)from, bytes) || !inside(MEMORY, (void *)to, bytes)) {
    return INVALID_VALUE;
  }
  struct step step = {.kind = STEP_COPY, .to = (void *)to, .from = (void *)from, .bytes = bytes};
  return submit(stream, &step);
}

EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, uint64_t stream) {
  ENTER_CONTEXT(cuMemsetD8Async);
  if (!inside(MEMORY, (void *)to, bytes)) {
    return INVALID_VALUE;
  }
  struct step step = {.kind = STEP_FILL, .to = (void *)to, .value = value, .bytes = bytes};
  return submit(stream, &step);
}

EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, uint64_t stream) {
  ENTER_CONTEXT(cuMemsetD32Async);
  if (to % 4 || !inside(MEMORY, (void *)to, 4 * count)) {
    return INVALID_VALUE;
  }
  struct step step = {
      .kind = STEP_FILL_WORDS, .to = (void *)to, .value = value, .bytes = 4 * count};
  return submit(stream, &step);
}

/* ---- libraries and kernels ---- */

/* Reads "kernel NAME REGISTERS STATIC_SHARED OFFSET:BYTES,...". */
static struct kernel *parse_kernel(const char *line) {
  struct kernel *kernel = calloc(1, sizeof *kernel);
  char parameters[2048] = "";
  int registers = 0;
  int shared = 0;
  if (sscanf(line, "kernel %255s %d %d %2047s", kernel->name, &registers, &shared, parameters) <
      3) {
    free(kernel);
    return NULL;
  }
  kernel->attributes[0] = 1024;
  kernel->attributes[1] = shared;
  kernel->attributes[4] = registers;
  kernel->attributes[5] = kernel->attributes[6] = 10 * capability_major + capability_minor;
  kernel->attributes[8] = 49152 - shared;
  char *rest = NULL;
  for (char *one = strtok_r(parameters, ",", &rest);
       one && kernel->count < MOST_PARAMETERS; one = strtok_r(NULL, ",", &rest)) {
    struct parameter *parameter = &kernel->parameters[kernel->count++];
    if (sscanf(one, "%zu:%zu", &parameter->offset, &parameter->bytes) != 2) {
      free(kernel);
      return NULL;
    }
  }
  return kernel;
}

static int parse(struct library *library, const char *image) {
  const char *line = strchr(image, '\n');
  while (line && line[1]) {
    line++;
    int arch;
    if (sscanf(line, "arch %d", &arch) == 1) {
      if (arch != 10 * capability_major + capability_minor) {
        return NO_BINARY_FOR_GPU;
      }
    } else if (strncmp(line, "end", 3) == 0) {
      return SUCCESS;
    } else {
      char copy[4096];
      snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
      struct kernel *kernel = parse_kernel(copy);
      if (!kernel) {
        return INVALID_IMAGE;
      }
      kernel->library = library;
      kernel->next = library->kernels;
      library->kernels = kernel;
    }
    line = strchr(line, '\n');
  }
  return INVALID_IMAGE; /* no "end": cut off */
}

EXPORT int cuLibraryLoadData(uint64_t *out, const void *code, void *jit_options, void *jit_values,
                             unsigned jit_count, void *options, void *values, unsigned count) {
  ENTER_CONTEXT(cuLibraryLoadData);
  (void)jit_options, (void)jit_values, (void)options, (void)values;
  if (jit_count || count) {
    return INVALID_VALUE;
  }
  if (strncmp(code, "fake kernels\n", 13) != 0) {
    return INVALID_IMAGE;
  }
  int capture = unsafe_in_capture();
  if (capture) {
    return capture;
  }
  struct library *library = calloc(1, sizeof *library);
  int parsed = parse(library, code);
  if (parsed) {
    free_library(library);
    return parsed;
  }
  add(LIBRARY, library, 0, 0);
  *out = (uint64_t)library;
  return SUCCESS;
}

EXPORT int cuLibraryUnload(uint64_t handle) {
  ENTER_RELEASE(cuLibraryUnload);
  early += busy;
  if (!find(LIBRARY, (void *)handle)) {
    return INVALID_HANDLE;
  }
  drop(LIBRARY, (void *)handle);
  free_library((struct library *)handle);
  return scripted;
}

EXPORT int cuLibraryGetKernel(uint64_t *out, uint64_t handle, const char *name) {
  ENTER_CONTEXT(cuLibraryGetKernel);
  if (!find(LIBRARY, (void *)handle)) {
    return INVALID_HANDLE;
  }
  for (struct kernel *kernel = ((struct library *)handle)->kernels; kernel; kernel = kernel->next) {
    if (strcmp(kernel->name, name) == 0) {
      *out = (uint64_t)kernel;
      return SUCCESS;
    }
  }
  return NOT_FOUND;
}

static struct kernel *kernel_of(uint64_t handle) {
  for (struct live *one = alive; one; one = one->next) {
    if (one->kind == LIBRARY) {
      struct kernel *kernel = ((struct library *)one->object)->kernels;
      for (; kernel; kernel = kernel->next) {
        if ((uint64_t)kernel == handle) {
          return kernel;
        }
      }
    }
  }
  return NULL;
}

EXPORT int cuKernelGetFunction(uint64_t *function, uint64_t handle) {
  ENTER_CONTEXT(cuKernelGetFunction);
  if (!kernel_of(handle)) {
    return INVALID_HANDLE;
  }
  *function = handle;
  return SUCCESS;
}

EXPORT int cuFuncLoad(uint64_t function) {
  ENTER_CONTEXT(cuFuncLoad);
  int capture = unsafe_in_capture();
  return capture ? capture : kernel_of(function) ? SUCCESS : INVALID_HANDLE;
}

EXPORT int cuKernelGetParamInfo(uint64_t handle, size_t index, size_t *offset, size_t *bytes) {
  ENTER_CONTEXT(cuKernelGetParamInfo);
  struct kernel *kernel = kernel_of(handle);
  if (!kernel) {
    return INVALID_HANDLE;
  }
  if (index >= (size_t)kernel->count) {
    return INVALID_VALUE;
  }
  *offset = kernel->parameters[index].offset;
  *bytes = kernel->parameters[index].bytes;
  return SUCCESS;
}

EXPORT int cuKernelGetAttribute(int *value, int attribute, uint64_t handle, int device) {
  ENTER_CONTEXT(cuKernelGetAttribute);
  struct kernel *kernel = kernel_of(handle);
  if (!kernel || device < 0 || device >= device_count) {
    return INVALID_HANDLE;
  }
  if (attribute < 0 || attribute >= 16) {
    return INVALID_VALUE;
  }
  *value = kernel->attributes[attribute];
  return SUCCESS;
}

EXPORT int cuKernelSetAttribute(int attribute, int value, uint64_t handle, int device) {
  ENTER_CONTEXT(cuKernelSetAttribute);
  struct kernel *kernel = kernel_of(handle);
  if (!kernel || device < 0 || device >= device_count) {
    return INVALID_HANDLE;
  }
  if (attribute < 8 || attribute >= 16 || (attribute == 8 && value > 232448)) {
    return INVALID_VALUE;
  }
  kernel->attributes[attribute] = value;
  return SUCCESS;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, uint64_t function, int threads,
                                                       size_t shared) {
  ENTER_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (!kernel_of(function)) {
    return INVALID_HANDLE;
  }
  if (threads < 1 || threads > 1024) {
    return INVALID_VALUE;
  }
  int by_threads = 2048 / threads;
  int by_shared = shared ? (int)(233472 / (shared + 1024)) : by_threads;
  *blocks = by_threads < by_shared ? by_threads : by_shared;
  return SUCCESS;
}

struct launch_attribute {
  uint32_t id;
  uint32_t pad;
  uint8_t value[64];
};

struct launch_config {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  uint64_t stream;
  const struct launch_attribute *attributes;
  unsigned count;
};

_Static_assert(sizeof(struct launch_config) == 56, "CUlaunchConfig");
_Static_assert(sizeof(struct launch_attribute) == 72, "CUlaunchAttribute");

EXPORT int cuLaunchKernelEx(const struct launch_config *config, uint64_t function,
                            void **parameters, void **extra) {
  ENTER_CONTEXT(cuLaunchKernelEx);
  struct kernel *kernel = kernel_of(function);
  if (!kernel) {
    return INVALID_HANDLE;
  }
  unsigned threads = config->block[0] * config->block[1] * config->block[2];
  if (extra || !config->grid[0] || !config->grid[1] || !config->grid[2] || !threads ||
      threads > 1024 || config->grid[1] > 65535 || config->grid[2] > 65535 ||
      (int)config->shared > kernel->attributes[8] || config->count > 8) {
    return INVALID_VALUE;
  }
  struct step step;
  memset(&step, 0, sizeof step);
  step.kind = STEP_LAUNCH;
  struct launch *launch = &step.launch;
  launch->kernel = kernel;
  memcpy(launch->name, kernel->name, sizeof launch->name);
  memcpy(launch->geometry, config->grid, sizeof config->grid);
  memcpy(launch->geometry + 3, config->block, sizeof config->block);
  launch->geometry[6] = config->shared;
  launch->stream = config->stream;
  launch->attributes = config->count;
  for (unsigned i = 0; i < config->count; i++) {
    launch->attribute_ids[i] = config->attributes[i].id;
    memcpy(launch->attribute_values[i], config->attributes[i].value, 64);
  }
  for (int i = 0; i < kernel->count; i++) {
    const struct parameter *parameter = &kernel->parameters[i];
    if (parameter->offset + parameter->bytes > sizeof launch->values) {
      return INVALID_VALUE;
    }
    memcpy(launch->values + parameter->offset, parameters[i], parameter->bytes);
    if (parameter->offset + parameter->bytes > launch->bytes) {
      launch->bytes = parameter->offset + parameter->bytes;
    }
  }
  return submit(config->stream, &step);
}

/* ---- graphs ---- */

EXPORT int cuStreamBeginCapture_v2(uint64_t handle, int mode) {
  ENTER_CONTEXT(cuStreamBeginCapture_v2);
  struct stream *stream = stream_of(handle);
  if (!stream) {
    return CAPTURE_UNSUPPORTED; /* the legacy stream cannot record */
  }
  if (stream->capturing || mode < 0 || mode > 2) {
    return ILLEGAL_STATE;
  }
  stream->capturing = 1;
  stream->graph = calloc(1, sizeof *stream->graph);
  return SUCCESS;
}

EXPORT int cuStreamEndCapture(uint64_t handle, uint64_t *out) {
  LOCKED;
  struct stream *stream = stream_of(handle);
  int scripted = note("cuStreamEndCapture");
  *out = 0;
  if (!stream) {
    return INVALID_HANDLE;
  }
  if (!stream->capturing || stream->origin) {
    return ILLEGAL_STATE;
  }
  int invalid = stream->capturing == 2;
  int unjoined = 0;
  struct graph *graph = stream->graph;
  stream->capturing = 0;
  stream->graph = NULL;
  for (struct live *one = alive; one; one = one->next) {
    struct stream *branch = one->object;
    if (one->kind == STREAM && branch->origin == stream) {
      invalid |= branch->capturing == 2;
      unjoined |= branch->unjoined;
      branch->capturing = 0;
      branch->graph = NULL;
      branch->origin = NULL;
    }
  }
  if (scripted || sticky || invalid || unjoined) {
    free_graph(graph);
    return scripted ? scripted : sticky ? sticky : invalid ? CAPTURE_INVALIDATED : CAPTURE_UNJOINED;
  }
  add(GRAPH, graph, 0, 0);
  *out = (uint64_t)graph;
  return SUCCESS;
}

EXPORT int cuGraphInstantiateWithFlags(uint64_t *out, uint64_t handle, uint64_t flags) {
  ENTER_CONTEXT(cuGraphInstantiateWithFlags);
  if (!find(GRAPH, (void *)handle) || flags) {
    return INVALID_VALUE;
  }
  struct graph *from = (struct graph *)handle;
  struct graph *exec = calloc(1, sizeof *exec);
  for (struct step *step = from->first; step; step = step->next) {
    struct step *copy = malloc(sizeof *copy);
    *copy = *step;
    copy->next = NULL;
    if (exec->last) {
      exec->last->next = copy;
    } else {
      exec->first = copy;
    }
    exec->last = copy;
    exec->count++;
  }
  add(EXEC, exec, 0, 0);
  *out = (uint64_t)exec;
  return SUCCESS;
}

EXPORT int cuGraphUpload(uint64_t exec, uint64_t stream) {
  ENTER_CONTEXT(cuGraphUpload);
  return find(EXEC, (void *)exec) && (!stream || stream_of(stream)) ? SUCCESS : INVALID_HANDLE;
}

EXPORT int cuGraphLaunch(uint64_t exec, uint64_t stream) {
  ENTER_CONTEXT(cuGraphLaunch);
  if (!find(EXEC, (void *)exec) || (stream && !stream_of(stream))) {
    return INVALID_HANDLE;
  }
  for (struct step *step = ((struct graph *)exec)->first; step; step = step->next) {
    run(step, 1);
  }
  return SUCCESS;
}

EXPORT int cuGraphDestroy(uint64_t graph) {
  ENTER_RELEASE(cuGraphDestroy);
  if (!find(GRAPH, (void *)graph)) {
    return INVALID_VALUE;
  }
  drop(GRAPH, (void *)graph);
  free_graph((struct graph *)graph);
  return scripted;
}

EXPORT int cuGraphExecDestroy(uint64_t exec) {
  ENTER_RELEASE(cuGraphExecDestroy);
  early += busy;
  if (!find(EXEC, (void *)exec)) {
    return INVALID_VALUE;
  }
  drop(EXEC, (void *)exec);
  free_graph((struct graph *)exec);
  return scripted;
}

/* ---- tensor maps ---- */

EXPORT int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, uint64_t address,
                                  const uint64_t *sizes, const uint64_t *strides,
                                  const uint32_t *box, const uint32_t *element_strides,
                                  int interleave, int swizzle, int promotion, int fill) {
  ENTER_CONTEXT(cuTensorMapEncodeTiled);
  if ((uint64_t)map % 64 || address % 16 || rank < 1 || rank > 5 || type < 0 || type > 12 ||
      interleave || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill < 0 ||
      fill > 1) {
    return INVALID_VALUE;
  }
  uint64_t words[16] = {address, (uint64_t)type << 32 | rank, (uint64_t)swizzle << 32 | (unsigned)fill};
  for (unsigned i = 0; i < rank; i++) {
    if (!sizes[i] || sizes[i] > (uint64_t)1 << 32 || !box[i] || box[i] > 256 ||
        element_strides[i] != 1 || (i + 1 < rank && strides[i] % 16)) {
      return INVALID_VALUE;
    }
    words[3 + i] = sizes[i];
    words[8 + i] = (uint64_t)box[i] << 48 | (i + 1 < rank ? strides[i] : 0);
  }
  memcpy(map, words, sizeof words);
  return SUCCESS;
}

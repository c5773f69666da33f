/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that works on the device itself: it allocates memory, and loads kernels whose code it asks for, in the way
 * of FlashInfer's modules. It finds the driver, a real one or a stand-in, by its file. Compiled by the test that calls it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
  int32_t type;
  int32_t length;
  union {
    int64_t number;
    void *pointer;
    char text[8];
  };
} any;

enum { INT = 1, RAW_TEXT = 8 };

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

static int (*allocate)(uint64_t *address, size_t bytes);
static int (*release)(uint64_t address);
static int (*error_name)(int code, const char **text);
static int (*load)(void **library, const void *code, void *, void *, unsigned, void *, void *, unsigned);
static int (*unload)(void *library);

static void (*ask)(const char *name, const char *sha256);
static _Thread_local char *code;
static _Thread_local int code_bytes;

EXPORT void FlashInferSetCubinCallback(void (*callback)(const char *, const char *)) { ask = callback; }

EXPORT void FlashInferSetCurrentCubin(const char *given, int bytes) {
  free(code);
  code = malloc(bytes + 1);
  memcpy(code, given, bytes);
  code[bytes] = 0;
  code_bytes = bytes;
}

static int raise(const char *what, int result) {
  char message[200];
  const char *name = "an unknown error";
  if (error_name) error_name(result, &name);
  snprintf(message, sizeof message, "%s failed with error %s", what, name);
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", message);
  return -1;
}

static int give(any *result, int64_t number) {
  result->type = INT;
  result->number = number;
  return 0;
}

EXPORT int __tvm_ffi_open(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)count;
  void *driver = args[0].type == RAW_TEXT ? dlopen(args[0].pointer, RTLD_NOW) : 0;
  if (driver) {
    allocate = dlsym(driver, "cuMemAlloc_v2");
    release = dlsym(driver, "cuMemFree_v2");
    error_name = dlsym(driver, "cuGetErrorName");
    load = dlsym(driver, "cuLibraryLoadData");
    unload = dlsym(driver, "cuLibraryUnload");
  }
  return give(result, driver && allocate && release && error_name && load && unload);
}

/* Allocates and gives back; the address. */
EXPORT int __tvm_ffi_allocate(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)count;
  uint64_t address = 0;
  int failed = allocate(&address, args[0].number);
  if (failed) return raise("allocating memory", failed);
  failed = release(address);
  return failed ? raise("freeing memory", failed) : give(result, (int64_t)address);
}

/* Asks for a kernel's code and loads it; its bytes. */
EXPORT int __tvm_ffi_load(void *self, const any *args, int32_t count, any *result) {
  (void)self, (void)count;
  void *library = 0;
  ask(args[0].pointer, args[1].pointer);
  if (!code_bytes) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "Failed to load cubin");
    return -1;
  }
  int failed = load(&library, code, 0, 0, 0, 0, 0, 0);
  if (failed) return raise("loading a kernel", failed);
  unload(library);
  return give(result, code_bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime of another revision (-DREVISION), or one that lacks functions (without -DWHOLE). */
#include <stdint.h>

typedef struct {
  uint32_t major, minor, revision;
} version;

void TVMFFIGetVersion(version *out) {
  out->major = 0;
  out->minor = 1;
  out->revision = REVISION;
}

int TVMFFIObjectIncRef(void *object) { return object == 0; }
int TVMFFIObjectDecRef(void *object) { return object == 0; }

#ifdef WHOLE
int TVMFFIFunctionCreate(void) { return -1; }
int TVMFFIFunctionGetGlobal(void) { return -1; }
void TVMFFIErrorMoveFromRaised(void **error) { *error = 0; }
void TVMFFIErrorSetRaisedFromCStr(void) {}
int TVMFFITensorFromDLPackVersioned(void) { return -1; }
int TVMFFIStringFromByteArray(void) { return -1; }
int TVMFFIEnvSetStream(void) { return -1; }
void *TVMFFIEnvGetStream(void) { return 0; }
#endif

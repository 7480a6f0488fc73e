/* libtimeslice-preload.so: injected into user processes with LD_PRELOAD. Does nothing at load; at
 * the first cuInit() it notes that the process uses CUDA, and passes the call on. */
#include "preload/preload.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

enum { kNoDevice = 100 }; /* CUDA_ERROR_NO_DEVICE */

typedef int (*cu_init)(unsigned flags);

static _Atomic int g_touched;
static _Atomic(cu_init) g_real;

static cu_init look_up(void* where) {
  cu_init found = NULL;
  *(void**)&found = dlsym(where, "cuInit"); /* the cast ISO C allows */
  return found;
}

/* A driver that the program opened for itself is no successor of ours: it is looked for by name,
 * and only if it is loaded already. */
static cu_init find_real(void) {
  cu_init real = look_up(RTLD_NEXT);
  if (real != NULL) return real;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == NULL) return NULL;
  real = look_up(driver);
  return real == cuInit ? NULL : real;
}

/* A program with more rights than its user must not feel who injected what. */
static int is_secure(void) {
  return getauxval(AT_SECURE) != 0;
}

int cuInit(unsigned flags) {
  cu_init real = atomic_load(&g_real);
  if (real == NULL) {
    real = find_real();
    if (real == NULL) return kNoDevice;
    atomic_store(&g_real, real);
  }
  if (!is_secure()) atomic_store(&g_touched, 1);
  return real(flags);
}

int ts_preload_touched(void) {
  return atomic_load(&g_touched);
}

/* A program that opens the driver itself, privately, and asks whoever answers to cuInit; then the
 * shim, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int call(void* where) {
  int (*init)(unsigned) = NULL;
  *(void**)&init = dlsym(where, "cuInit");
  return init == NULL ? -1 : init(0);
}

static int touched(void* shim) {
  int (*ask)(void) = NULL;
  *(void**)&ask = dlsym(shim, "ts_preload_touched");
  return ask == NULL ? -1 : ask();
}

int main(int argc, char** argv) {
  printf("none=%d", call(RTLD_DEFAULT));
  void* driver = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (driver != NULL) printf(" default=%d own=%d", call(RTLD_DEFAULT), call(driver));
  void* shim = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (shim != NULL) {
    const int answer = call(shim);
    printf(" shim=%d touched=%d", answer, touched(shim));
  }
  puts("");
  return 0;
}

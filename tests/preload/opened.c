/* A program that opens the driver itself, privately, and asks whoever answers to cuInit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int call(void* where) {
  int (*init)(unsigned) = NULL;
  *(void**)&init = dlsym(where, "cuInit");
  return init == NULL ? -1 : init(0);
}

int main(int argc, char** argv) {
  printf("none=%d", call(RTLD_DEFAULT));
  void* driver = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (driver != NULL) printf(" default=%d own=%d", call(RTLD_DEFAULT), call(driver));
  puts("");
  return 0;
}

/* A program that the linker binds to the driver. Prints the answers, and what the shim has noticed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned flags);

static int touched(void) {
  int (*ask)(void) = NULL;
  *(void**)&ask = dlsym(RTLD_DEFAULT, "ts_preload_touched");
  return ask == NULL ? -1 : ask();
}

int main(int argc, char** argv) {
  printf("touched=%d", touched());
  if (argc > 1 && strcmp(argv[1], "idle") == 0) return puts("") == EOF;
  const int good = cuInit(0);
  const int bad = cuInit(7);
  printf(" cuInit(0)=%d cuInit(7)=%d touched=%d\n", good, bad, touched());
  return 0;
}

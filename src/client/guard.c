#include "client/guard.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };

void tsc_guard_open(struct tsc_guard* guard) {
  guard->pid = getpid();
  guard->page = NULL;
  void* page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, kPage, MADV_WIPEONFORK) != 0) {
    munmap(page, kPage);
    return;
  }
  *(unsigned char*)page = 1;
  guard->page = page;
}

void tsc_guard_close(struct tsc_guard* guard) {
  if (guard->page != NULL) munmap((void*)guard->page, kPage);
  guard->page = NULL;
}

bool tsc_guard_forked(const struct tsc_guard* guard) {
  if (guard->page != NULL) return *guard->page == 0;
  return guard->pid != getpid();
}

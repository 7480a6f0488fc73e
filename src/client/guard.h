/* Notices a fork: a page that the kernel hands to every child empty. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct tsc_guard {
  const volatile unsigned char* page; /* NULL where the kernel cannot wipe: then the pid decides */
  pid_t pid;
};

void tsc_guard_open(struct tsc_guard* guard);
void tsc_guard_close(struct tsc_guard* guard);

/* True in a child of the process that opened the guard. Async-signal-safe. */
bool tsc_guard_forked(const struct tsc_guard* guard);

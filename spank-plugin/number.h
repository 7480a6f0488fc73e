/* Whole numbers, without strtol(): newer headers rename it to a symbol that older systems lack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: it is none, or not from `low` to `high`. */
static inline bool tsp_number(const char* text, int64_t low, int64_t high, int64_t* out) {
  const bool negative = *text == '-';
  const char* digit = text + (negative ? 1 : 0);
  if (*digit == '\0') return false;
  int64_t value = 0;
  for (; *digit != '\0'; ++digit) {
    if (*digit < '0' || *digit > '9' || value > INT64_C(0x100000000)) return false;
    value = value * 10 + (*digit - '0');
  }
  *out = negative ? -value : value;
  return *out >= low && *out <= high;
}

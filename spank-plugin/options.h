/* What a user asks for: the options of sbatch, srun and salloc, and the variables that say the
 * same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "local/protocol.h"

enum tsp_option {
  TSP_GROUP,
  TSP_PRIORITY,
  TSP_BACKEND,
  TSP_MODE,
  TSP_LAUNCH,
  TSP_GANG,
  TSP_OPTIONS, /* how many there are */
};

/* Of a task: that its TIMESLICE_GANG is the plugin's count, for the library, and not the user's
 * wish. */
#define TSP_COUNTED "TIMESLICE_GANG_COUNTED"

enum { TSP_VALUE_BYTES = 64, TSP_PROBLEM_BYTES = 256 };

struct tsp_option_text {
  const char* name;     /* "timeslice-group" */
  const char* variable; /* "TIMESLICE_GROUP" */
  const char* arginfo;
  const char* usage;
};
extern const struct tsp_option_text tsp_option_texts[TSP_OPTIONS];

/* As texts, each checked; "": not asked for. */
struct tsp_wishes {
  char text[TSP_OPTIONS][TSP_VALUE_BYTES];
};

/* False: `problem` is a sentence that names the value, as `said` (an option or a variable). */
bool tsp_check(enum tsp_option which, const char* said, const char* value, char* problem);

/* Keeps a value that is right. */
bool tsp_wish(struct tsp_wishes* wishes, enum tsp_option which, const char* said, const char* value,
              char* problem);

static inline bool tsp_asks(const struct tsp_wishes* wishes) {
  return wishes->text[TSP_GROUP][0] != '\0';
}

int32_t tsp_priority(const struct tsp_wishes* wishes);
bool tsp_is_open(const struct tsp_wishes* wishes);
/* 0: no gang. `tasks`: how many the step has; 0: it is none of tasks, but a batch script. */
uint32_t tsp_gang(const struct tsp_wishes* wishes, uint32_t tasks);

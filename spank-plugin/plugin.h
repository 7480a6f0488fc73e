/* What the contexts of the plugin share: one file for each, behind dispatch.c. */
#pragma once

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"
#include "plugstack.h"

enum { TSP_ERROR_BYTES = 768, TSP_ENVIRONMENT_BYTES = 16384 };

/* One of a process: Slurm loads the plugin anew for each srun, sbatch, salloc and slurmstepd. */
struct tsp_plugin {
  struct tsp_words words;
  struct tsp_wishes options;       /* as the callbacks brought them */
  unsigned heard[TSP_OPTIONS];     /* how often */
  char problem[TSP_PROBLEM_BYTES]; /* of an option that came to slurmstepd and is wrong */
};
extern struct tsp_plugin tsp_plugin;

/* The node that this slurmstepd or epilog works for. */
const char* tsp_node_name(void);

/* sbatch, salloc and srun (submit.c). */
int tsp_submit(spank_t spank);

/* slurmstepd (step.c): all answer 0, since anything else drains the node or hangs srun. */
int tsp_step_user_init(spank_t spank);
int tsp_step_task_privileged(spank_t spank); /* does not return where the task must not start */
int tsp_step_task_init(spank_t spank);
int tsp_step_task_exit(spank_t spank);
int tsp_step_exit(spank_t spank);

/* The epilog (epilog.c). */
int tsp_epilog(void);

/* A step as its slurmstepd knows it, from user_init on. */
#pragma once

#include "plugin.h"

struct tsp_step {
  struct tsp_wishes wishes;
  uint32_t job, id; /* Slurm's numbers */
  uint32_t gang;
  uint32_t tasks; /* on all nodes; 0: a script */
  bool registered;
  uint32_t exited; /* tasks of this node */
  bool gated;
  uid_t uid;
  pid_t daemon;                            /* its slurmstepd */
  char name[TSL_TEXT_JOB];                 /* "17.0", "17-1.0" when Slurm runs the job anew */
  char error[TSP_ERROR_BYTES];             /* no task may start, and why */
  char notice[TSP_ERROR_BYTES];            /* they start without turns, and why */
  char environment[TSP_ENVIRONMENT_BYTES]; /* lines NAME=VALUE, from the node */
};

/* What the node calls the devices, out of `environment`; "" if it did not say. */
void tsp_step_devices(const struct tsp_step* step, char* out, size_t bytes);

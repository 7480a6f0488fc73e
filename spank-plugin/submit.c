/* In sbatch, salloc and srun: says no while the user looks on, and hands the wishes to the job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

/* Where Slurm takes the plugin for optional it does not listen to what a hook returns. */
__attribute__((noreturn)) static void refuse(const char* problem) {
  slurm_spank_log("timeslice: %s", problem);
  fflush(NULL);
  _exit(1);
}

/* The option that this command inherits from the job it is typed in, or NULL. Slurm hands it over
 * as if it had been typed here, before what has been. */
static const char* inherited(enum tsp_option which) {
  char name[128];
  snprintf(name, sizeof name, "SLURM_SPANK__SLURM_SPANK_OPTION_timeslice_%s",
           tsp_option_texts[which].name);
  for (char* c = name; *c != '\0'; ++c) {
    if (*c == '-') *c = '_';
  }
  return getenv(name);
}

static bool is_typed(enum tsp_option which) {
  return tsp_plugin.heard[which] > (inherited(which) != NULL ? 1u : 0u);
}

/* A number that the step around us was given by the plugin says nothing of this one. */
static bool is_counted(enum tsp_option which, const char* value) {
  const char* counted = getenv(TSP_COUNTED);
  return which == TSP_GANG && counted != NULL && strcmp(counted, value) == 0;
}

/* The command line beats the environment, which beats what the job around it was given. */
static void take_environment(struct tsp_wishes* wishes) {
  char problem[TSP_PROBLEM_BYTES];
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    const char* variable = tsp_option_texts[i].variable;
    const char* value = getenv(variable);
    if (is_typed((enum tsp_option)i) || value == NULL || *value == '\0') continue;
    if (is_counted((enum tsp_option)i, value)) continue;
    if (!tsp_wish(wishes, (enum tsp_option)i, variable, value, problem)) refuse(problem);
  }
}

static void refuse_without_group(const struct tsp_wishes* options) {
  char problem[TSP_PROBLEM_BYTES];
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    if (options->text[i][0] == '\0') continue;
    snprintf(problem, sizeof problem, "--%s=%s: of which group? add --timeslice-group=NAME",
             tsp_option_texts[i].name, options->text[i]);
    refuse(problem);
  }
}

/* Twice: the job's environment carries them wherever it is carried; Slurm's own memory of the job
 * reaches the epilog, and a batch script whose user exports nothing. */
static void hand_on(spank_t spank, const struct tsp_wishes* wishes) {
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    if (wishes->text[i][0] == '\0') continue;
    setenv(tsp_option_texts[i].variable, wishes->text[i], 1);
    spank_job_control_setenv(spank, tsp_option_texts[i].variable, wishes->text[i], 1);
  }
  /* For a node where the plugin is missing: libtimeslice says so there, and does not go without. */
  setenv("TIMESLICE_REQUIRED", "slurm", 1);
}

int tsp_submit(spank_t spank) {
  const enum spank_context context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return 0;
  /* That of the job in which this is typed says nothing of the new one, whose steps may ask for
   * turns where it does not. */
  if (context == S_CTX_ALLOCATOR) unsetenv("SLURM_RESTART_COUNT");
  struct tsp_wishes wishes = tsp_plugin.options;
  const char* group = getenv(tsp_option_texts[TSP_GROUP].variable);
  if (!tsp_asks(&wishes) && (group == NULL || *group == '\0')) {
    refuse_without_group(&wishes);
    return 0;
  }
  take_environment(&wishes);
  if (tsp_plugin.words.trouble[0] != '\0') refuse(tsp_plugin.words.trouble);
  hand_on(spank, &wishes);
  return 0;
}

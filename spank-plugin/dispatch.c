/* The hooks, and nothing else: which file does the work in which context. */
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

#define TSP_EXPORT __attribute__((visibility("default")))

extern TSP_EXPORT const char plugin_name[];
extern TSP_EXPORT const char plugin_type[];
extern TSP_EXPORT const unsigned int plugin_version;
extern TSP_EXPORT const unsigned int spank_plugin_version;
SPANK_PLUGIN(timeslice, 1)

struct tsp_plugin tsp_plugin;

const char* tsp_node_name(void) {
  const char* name = getenv("SLURMD_NODENAME");
  return name != NULL ? name : "";
}

/* Slurm calls it once for what it inherits and once for the command line: the last one counts. An
 * error makes sbatch, srun and salloc refuse; slurmstepd only logs it, and must remember. */
static int chosen(int which, const char* value, int remote) {
  char said[TSP_VALUE_BYTES];
  char problem[TSP_PROBLEM_BYTES];
  snprintf(said, sizeof said, "--%s", tsp_option_texts[which].name);
  ++tsp_plugin.heard[which];
  if (tsp_wish(&tsp_plugin.options, (enum tsp_option)which, said, value != NULL ? value : "",
               problem)) {
    return 0;
  }
  if (remote) {
    snprintf(tsp_plugin.problem, sizeof tsp_plugin.problem, "%s", problem);
  } else {
    slurm_spank_log("timeslice: %s", problem);
  }
  return -1;
}

static void offer_options(spank_t spank) {
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    const struct tsp_option_text* text = &tsp_option_texts[i];
    struct spank_option option = {.name = (char*)text->name,
                                  .arginfo = (char*)text->arginfo,
                                  .usage = (char*)text->usage,
                                  .has_arg = 1,
                                  .val = i,
                                  .cb = chosen};
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
      slurm_error("timeslice: cannot offer --%s: does another plugin have it?", text->name);
    }
  }
}

TSP_EXPORT int slurm_spank_init(spank_t spank, int count, char** words) {
  tsp_words_read(count, words, tsp_node_name(), &tsp_plugin.words);
  switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
    case S_CTX_REMOTE:
      offer_options(spank);
      return 0;
    case S_CTX_SLURMD:
      if (tsp_plugin.words.trouble[0] != '\0')
        slurm_error("timeslice: %s", tsp_plugin.words.trouble);
      return 0;
    default:
      return 0;
  }
}

TSP_EXPORT int slurm_spank_init_post_opt(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return spank_context() == S_CTX_REMOTE ? 0 : tsp_submit(spank);
}

TSP_EXPORT int slurm_spank_user_init(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return tsp_step_user_init(spank);
}

TSP_EXPORT int slurm_spank_task_init_privileged(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return tsp_step_task_privileged(spank);
}

TSP_EXPORT int slurm_spank_task_init(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return tsp_step_task_init(spank);
}

TSP_EXPORT int slurm_spank_task_exit(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return tsp_step_task_exit(spank);
}

TSP_EXPORT int slurm_spank_exit(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  return spank_context() == S_CTX_REMOTE ? tsp_step_exit(spank) : 0;
}

/* init() is not called in this context. */
TSP_EXPORT int slurm_spank_job_epilog(spank_t spank, int count, char** words) {
  (void)spank;
  tsp_words_read(count, words, tsp_node_name(), &tsp_plugin.words);
  return tsp_epilog();
}

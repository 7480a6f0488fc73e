/* In the epilog, as root, once for each node of a job, also for one that was cancelled: whatever is
 * left of it there takes no turn any more. */
#include <slurm/slurm.h>
#include <stdlib.h>

#include "client/link.h"
#include "exchange.h"
#include "number.h"
#include "plugin.h"

int tsp_epilog(void) {
  /* Not spank_job_control_getenv(): it ends the process in this context. */
  if (getenv("SPANK_TIMESLICE_GROUP") == NULL) return 0;
  const char* id = getenv("SLURM_JOB_ID");
  int64_t job = 0;
  if (id == NULL || !tsp_number(id, 1, UINT32_MAX, &job)) return 0;
  struct tsl_message end = tsc_message(TSL_STEP_END, 0);
  end.u.step.slurm_job = (uint32_t)job;
  end.u.step.slurm_step = TSL_ALL_STEPS;
  struct tsp_answer answer;
  tsp_exchange(tsp_plugin.words.socket, tsp_plugin.words.timeout_ms, NULL, &end, NULL, &answer);
  if (!answer.ok) slurm_error("timeslice: epilog of job %s: %s", id, answer.why);
  return 0;
}

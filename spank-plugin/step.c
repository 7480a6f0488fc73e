/* In slurmstepd: asks the node once before the tasks start, refuses or equips them, and says when
 * the step is over. */
#include "step.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/link.h"
#include "exchange.h"
#include "gate.h"
#include "number.h"

enum {
  kListBytes = 4096,
  kRefused = 1,
  kMostParts = 128, /* of a heterogeneous job: Slurm's MAX_HET_JOB_COMPONENTS */
};

static struct tsp_step g_step;

/* A variable of the job, or "". */
static const char* job_variable(spank_t spank, const char* name, char* buffer, size_t bytes) {
  const bool found = spank_getenv(spank, name, buffer, (int)bytes) == ESPANK_SUCCESS;
  return found ? buffer : "";
}

/* A number of tasks that the plugin has counted for the step around this one is nobody's wish. */
static bool is_counted(spank_t spank, const char* gang) {
  char counted[16];
  return *gang != '\0' &&
         strcmp(gang, job_variable(spank, TSP_COUNTED, counted, sizeof counted)) == 0;
}

/* What the user asked for: the submission has put it into the environment, and into the options and
 * Slurm's own memory for those whose environment does not come along. Anybody can forge all of it.
 */
static const char* said(spank_t spank, int which, char* value, size_t bytes) {
  const char* variable = tsp_option_texts[which].variable;
  char remembered[TSP_VALUE_BYTES];
  snprintf(remembered, sizeof remembered, "SLURM_SPANK_%s", variable);
  const char* text = job_variable(spank, variable, value, bytes);
  if (which == TSP_GANG && is_counted(spank, text)) text = "";
  if (*text == '\0') text = tsp_plugin.options.text[which];
  return *text != '\0' ? text : job_variable(spank, remembered, value, bytes);
}

/* False: something is wrong. What is said without a group asks for nothing. */
static bool collect(spank_t spank, struct tsp_wishes* wishes, char* problem) {
  char value[kListBytes];
  snprintf(problem, TSP_PROBLEM_BYTES, "%s", tsp_plugin.problem);
  if (problem[0] != '\0') return false;
  if (*said(spank, TSP_GROUP, value, sizeof value) == '\0') return true;
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    const char* text = said(spank, i, value, sizeof value);
    if (*text == '\0') continue;
    if (!tsp_wish(wishes, (enum tsp_option)i, tsp_option_texts[i].variable, text, problem)) {
      return false;
    }
  }
  return true;
}

static bool has_tasks(uint32_t id) {
  return id < SLURM_MAX_NORMAL_STEP_ID;
}

static uint32_t number_in(spank_t spank, const char* variable, uint32_t otherwise) {
  char text[16];
  int64_t value = 0;
  const char* found = job_variable(spank, variable, text, sizeof text);
  return tsp_number(found, 1, UINT32_MAX, &value) ? (uint32_t)value : otherwise;
}

/* The number that the parts of a heterogeneous job share. The environment is the user's: a number
 * that can be none of this job's would be another's name. */
static uint32_t first_part(spank_t spank, uint32_t job) {
  const uint32_t first = number_in(spank, "SLURM_JOB_ID", job);
  return first <= job && job - first < kMostParts ? first : job;
}

/* The parts of a heterogeneous job have numbers of their own, and one workload among them: its
 * environment has the number of the first, and counts all of its tasks. */
static void name_step(spank_t spank, struct tsp_step* step, uint32_t* tasks) {
  const bool has_parts = number_in(spank, "SLURM_HET_SIZE", 0) > 1;
  const uint32_t first = has_parts ? first_part(spank, step->job) : step->job;
  /* In a step's environment; S_SLURM_RESTART_COUNT is not set there (22.05). */
  char run[16] = ""; /* what an earlier run has left somewhere is another job's */
  const uint32_t restarts = number_in(spank, "SLURM_RESTART_COUNT", 0);
  if (restarts > 0) snprintf(run, sizeof run, "-%u", restarts);
  if (has_parts) *tasks = number_in(spank, "SLURM_NTASKS", *tasks);
  if (has_tasks(step->id)) {
    snprintf(step->name, sizeof step->name, "%u%s.%u", first, run, step->id);
  } else {
    const bool batch = step->id == SLURM_BATCH_SCRIPT;
    snprintf(step->name, sizeof step->name, "%u%s.%s", first, run, batch ? "batch" : "interactive");
  }
}

static void look_up(spank_t spank, struct tsp_step* step) {
  uint32_t tasks = 0;
  spank_get_item(spank, S_JOB_ID, &step->job);
  spank_get_item(spank, S_JOB_UID, &step->uid);
  spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks);
  step->daemon = getpid();
  name_step(spank, step, &tasks);
  step->gang = tsp_gang(&step->wishes, has_tasks(step->id) ? tasks : 0);
  step->gated = has_tasks(step->id) && !tsp_is_open(&step->wishes);
  step->tasks = tasks;
}

/* Only its tasks wait at the gate: more than they are never come together there, and of fewer the
 * others would be left there while these wait for them. */
static bool is_no_gang(const struct tsp_step* step, char* problem) {
  if (!step->gated || step->gang == 0 || step->gang == step->tasks) return false;
  const bool more = step->gang > step->tasks;
  snprintf(problem, TSP_PROBLEM_BYTES,
           "a gang of %u is %s than its %u task%s: leave --timeslice-gang out, or add "
           "--timeslice-launch=open where %s",
           step->gang, more ? "more" : "less", step->tasks, step->tasks == 1 ? "" : "s",
           more ? "the tasks start the others" : "not all of them take turns");
  return true;
}

/* The step's GPUs on this node, as the node numbers them; "": Slurm gave it none, so it may use
 * all. A task's own variables name GPUs by their place among those it may open, and SLURM_JOB_GPUS
 * is that of the batch script's node. */
static const char* claim_of(spank_t spank, const struct tsp_step* step, char* out, size_t bytes) {
  const char* gpus = job_variable(spank, "SLURM_STEP_GPUS", out, bytes);
  if (*gpus != '\0' || has_tasks(step->id)) return gpus;
  return job_variable(spank, "SLURM_JOB_GPUS", out, bytes);
}

static void ask_node(spank_t spank, struct tsp_step* step, struct tsp_answer* answer) {
  char claim[kListBytes];
  struct tsl_message begin = tsc_message(TSL_STEP_BEGIN, 0);
  struct tsl_step* what = &begin.u.step;
  what->slurm_job = step->job;
  what->slurm_step = step->id;
  what->gang = step->gang;
  what->priority = tsp_priority(&step->wishes);
  what->deadline_ms = tsp_plugin.words.timeout_ms - tsp_plugin.words.timeout_ms / 8;
  strcpy(what->group, step->wishes.text[TSP_GROUP]);
  strcpy(what->job, step->name);
  strcpy(what->backend, step->wishes.text[TSP_BACKEND]);
  struct tsp_text text = {.bytes = step->environment, .room = sizeof step->environment};
  tsp_exchange(tsp_plugin.words.socket, tsp_plugin.words.timeout_ms,
               claim_of(spank, step, claim, sizeof claim), &begin, &text, answer);
}

static void refused(struct tsp_step* step, const char* why) {
  const char* group = step->wishes.text[TSP_GROUP];
  snprintf(step->error, sizeof step->error, "node %s: step %s cannot take turns%s%s: %s",
           tsp_node_name(), step->name, *group != '\0' ? " in group " : "", group, why);
}

static void join_group(spank_t spank, struct tsp_step* step) {
  struct tsp_answer answer;
  ask_node(spank, step, &answer);
  step->registered = answer.ok;
  if (answer.ok) return;
  refused(step, answer.why);
  /* An error of the user's own is one under either word; so is a no. */
  const bool away = answer.reply.status == TSL_OK || answer.reply.status == TSL_MASTER_DOWN;
  if (tsp_plugin.words.on_error != TSP_STANDALONE || !away) return;
  snprintf(step->notice, sizeof step->notice, "%.700s; it runs without time slicing", step->error);
  step->error[0] = '\0';
}

/* Runs as the job's user. */
int tsp_step_user_init(spank_t spank) {
  struct tsp_step* step = &g_step;
  char problem[TSP_PROBLEM_BYTES] = "";
  spank_get_item(spank, S_JOB_STEPID, &step->id);
  if (step->id == SLURM_EXTERN_CONT) return 0;
  const bool fine = collect(spank, &step->wishes, problem);
  if (fine && !tsp_asks(&step->wishes)) return 0;
  look_up(spank, step);
  if (!fine) {
    refused(step, problem);
  } else if (tsp_plugin.words.trouble[0] != '\0') {
    refused(step, tsp_plugin.words.trouble);
  } else if (is_no_gang(step, problem)) {
    refused(step, problem);
  } else {
    join_group(spank, step);
  }
  return 0;
}

/* Of the tasks of a node one speaks for all. */
static bool is_first_here(spank_t spank) {
  int task = -1;
  return spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0;
}

static bool is_first(spank_t spank) {
  uint32_t task = 1;
  return spank_get_item(spank, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS && task == 0;
}

/* The only place to end a task in: an error of any other hook drains the node, or is lost. */
int tsp_step_task_privileged(spank_t spank) {
  struct tsp_step* step = &g_step;
  if (step->notice[0] != '\0' && is_first_here(spank))
    slurm_spank_log("timeslice: %s", step->notice);
  if (step->error[0] == '\0' && step->registered && step->gated) {
    char why[TSP_WHY_BYTES];
    if (!tsp_gate(step, is_first(spank), why)) refused(step, why);
  }
  if (step->error[0] == '\0') return 0;
  if (is_first_here(spank)) slurm_spank_log("timeslice: %s", step->error);
  _exit(kRefused); /* what the hook returns counts only where the plugin is required */
}

/* What the task gets. */

void tsp_step_devices(const struct tsp_step* step, char* out, size_t bytes) {
  static const char kName[] = "TIMESLICE_DEVICES=";
  out[0] = '\0';
  const char* line = step->environment;
  while (line != NULL && strncmp(line, kName, sizeof kName - 1) != 0) {
    line = strchr(line, '\n');
    if (line != NULL) ++line;
  }
  if (line == NULL) return;
  line += sizeof kName - 1;
  const size_t length = strcspn(line, "\n");
  if (length < bytes) {
    memcpy(out, line, length);
    out[length] = '\0';
  }
}

/* Line by line, as the node wrote them. */
static void set_lines(spank_t spank, const char* lines) {
  char line[TSP_ENVIRONMENT_BYTES];
  while (*lines != '\0') {
    const size_t length = strcspn(lines, "\n");
    const char* equals = memchr(lines, '=', length);
    if (equals != NULL && length < sizeof line) {
      memcpy(line, lines, length);
      line[length] = '\0';
      line[equals - lines] = '\0';
      spank_setenv(spank, line, line + (equals - lines) + 1, 1);
    }
    lines += length + (lines[length] == '\n');
  }
}

static bool holds(const char* list, const char* path) {
  const size_t length = strlen(path);
  for (const char* at = strstr(list, path); at != NULL; at = strstr(at + 1, path)) {
    const bool begins = at == list || at[-1] == ':' || at[-1] == ' ';
    const bool ends = at[length] == '\0' || at[length] == ':' || at[length] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

/* Before what the user preloads, and once however deep steps are nested. A list that is too long to
 * read stays as it is. */
static void inject(spank_t spank, const char* path) {
  char before[kListBytes];
  char all[kListBytes + TSP_PATH_BYTES + 1];
  if (path[0] == '\0' || access(path, R_OK) != 0) return;
  const spank_err_t got = spank_getenv(spank, "LD_PRELOAD", before, sizeof before);
  if (got == ESPANK_NOSPACE) {
    slurm_spank_log("timeslice: LD_PRELOAD is longer than %d bytes: %s is not put before it",
                    kListBytes - 1, path);
    return;
  }
  const char* list = got == ESPANK_SUCCESS ? before : "";
  if (holds(list, path)) return;
  snprintf(all, sizeof all, "%s%s%s", path, *list != '\0' ? ":" : "", list);
  spank_setenv(spank, "LD_PRELOAD", all, 1);
}

/* The library reads a number; the words are the plugin's, for steps to come. */
static void set_gang(spank_t spank, const struct tsp_step* step) {
  char gang[16];
  snprintf(gang, sizeof gang, "%u", step->gang);
  const char* wish = step->wishes.text[TSP_GANG];
  const bool counted = *wish == '\0' || strcmp(wish, "tasks") == 0;
  if (step->gang == 0 && strcmp(wish, "no") != 0) {
    spank_unsetenv(spank, tsp_option_texts[TSP_GANG].variable);
  } else {
    spank_setenv(spank, tsp_option_texts[TSP_GANG].variable, gang, 1);
  }
  if (counted && step->gang != 0) {
    spank_setenv(spank, TSP_COUNTED, gang, 1);
  } else {
    spank_unsetenv(spank, TSP_COUNTED);
  }
}

int tsp_step_task_init(spank_t spank) {
  const struct tsp_step* step = &g_step;
  if (!step->registered) {
    if (step->notice[0] == '\0') return 0;
    spank_unsetenv(spank, "TIMESLICE_REQUIRED"); /* the site said that it may go without */
    spank_unsetenv(spank, tsp_option_texts[TSP_GROUP].variable);
    return 0;
  }
  set_lines(spank, step->environment);
  for (int i = 0; i < TSP_OPTIONS; ++i) {
    const char* value = step->wishes.text[i];
    if (*value != '\0') spank_setenv(spank, tsp_option_texts[i].variable, value, 1);
  }
  set_gang(spank, step);
  spank_setenv(spank, "TIMESLICE_JOB", step->name, 1);
  spank_setenv(spank, "TIMESLICE_SOCKET", tsp_plugin.words.socket, 1);
  spank_setenv(spank, "TIMESLICE_REQUIRED", "1", 1);
  spank_setenv(spank, "TIMESLICE_GROUP_ACTIVE", "1", 1);
  if (tsp_plugin.words.client[0] != '\0') {
    spank_setenv(spank, "TIMESLICE_LIBRARY", tsp_plugin.words.client, 1);
  }
  inject(spank, tsp_plugin.words.preload);
  return 0;
}

static struct tsl_message about(const struct tsp_step* step, enum tsl_type type) {
  struct tsl_message message = tsc_message(type, 0);
  message.u.step.slurm_job = step->job;
  message.u.step.slurm_step = step->id;
  return message;
}

static void ask(const struct tsl_message* message, struct tsp_answer* answer) {
  tsp_exchange(tsp_plugin.words.socket, tsp_plugin.words.timeout_ms, NULL, message, NULL, answer);
}

/* With the last task of the first node: later nothing reaches the user any more. */
int tsp_step_task_exit(spank_t spank) {
  struct tsp_step* step = &g_step;
  uint32_t node = 1;
  uint32_t tasks = 0;
  if (!step->registered) return 0;
  spank_get_item(spank, S_JOB_NODEID, &node);
  spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks);
  if (++step->exited < tasks || node != 0) return 0;
  struct tsp_answer answer;
  const struct tsl_message what = about(step, TSL_ACCOUNT);
  ask(&what, &answer);
  if (!answer.ok) return 0;
  const char* had = answer.reply.detail;
  if (*had == '\0' && step->gated) return 0; /* it never began, and was told why */
  slurm_spank_log("timeslice: job %s/%s had %s", step->wishes.text[TSP_GROUP], step->name,
                  *had != '\0' ? had : "no turn on this node");
  return 0;
}

/* Once the tasks are gone; the node hears of it from the end of this process otherwise. */
int tsp_step_exit(spank_t spank) {
  const struct tsp_step* step = &g_step;
  (void)spank;
  if (!step->registered || getpid() != step->daemon) return 0;
  struct tsp_answer answer;
  const struct tsl_message what = about(step, TSL_STEP_END);
  ask(&what, &answer);
  if (!answer.ok) slurm_error("timeslice: end of step %s: %s", step->name, answer.why);
  return 0;
}

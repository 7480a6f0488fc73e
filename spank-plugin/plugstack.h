/* The words behind the plugin's name in plugstack.conf. */
#pragma once

#include <stdbool.h>
#include <sys/un.h>

enum { TSP_PATH_BYTES = 256, TSP_TROUBLE_BYTES = 256 };

enum tsp_on_error {
  TSP_FAIL,       /* a task that cannot take turns does not start */
  TSP_STANDALONE, /* it runs without, and its user is told */
};

struct tsp_words {
  char socket[sizeof(((struct sockaddr_un*)0)->sun_path)];
  int timeout_ms; /* for all that is asked of the node, each time */
  int gather_ms;  /* for all tasks of a step to reach the gate, each with a join */
  enum tsp_on_error on_error;
  char client[TSP_PATH_BYTES];  /* libtimeslice.so, where it is in no directory of the linker's */
  char preload[TSP_PATH_BYTES]; /* "": nothing is injected */
  char trouble[TSP_TROUBLE_BYTES]; /* a sentence about the first word that is wrong, or "" */
};

/* `%n` in a path is the name of the node, as in slurm.conf. */
void tsp_words_read(int count, char** words, const char* node, struct tsp_words* out);

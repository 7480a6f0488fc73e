#include "plugstack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/protocol.h"
#include "number.h"

enum { kTimeoutMs = 1000, kGatherMs = 60000, kLongestMs = 3600000 };

static void complain(struct tsp_words* out, const char* word, const char* what) {
  if (out->trouble[0] != '\0') return;
  snprintf(out->trouble, sizeof out->trouble, "plugstack.conf: '%.80s' %s", word, what);
}

/* False: it does not fit. */
static bool expand(const char* text, const char* node, char* out, size_t bytes) {
  size_t at = 0;
  for (; *text != '\0'; ++text) {
    const bool name = text[0] == '%' && text[1] == 'n';
    const char* piece = name ? node : text;
    const size_t length = name ? strlen(node) : 1;
    if (at + length >= bytes) return false;
    memcpy(out + at, piece, length);
    at += length;
    if (name) ++text;
  }
  out[at] = '\0';
  return true;
}

static void take_path(struct tsp_words* out, const char* word, const char* text, const char* node,
                      char* field, size_t bytes) {
  if (text[0] != '/') {
    complain(out, word, "is no absolute path");
  } else if (!expand(text, node, field, bytes)) {
    field[0] = '\0';
    complain(out, word, "is too long");
  }
}

static void take_ms(struct tsp_words* out, const char* word, const char* text, int* field) {
  int64_t value = 0;
  if (tsp_number(text, 1, kLongestMs, &value)) {
    *field = (int)value;
  } else {
    complain(out, word, "is not a whole number of milliseconds from 1 to 3600000");
  }
}

/* What is behind `name`, which ends in '=', or NULL. */
static const char* behind(const char* word, const char* name) {
  const size_t length = strlen(name);
  return strncmp(word, name, length) == 0 ? word + length : NULL;
}

static void take(struct tsp_words* out, const char* word, const char* node) {
  const char* text = NULL;
  if ((text = behind(word, "socket=")) != NULL) {
    take_path(out, word, text, node, out->socket, sizeof out->socket);
  } else if ((text = behind(word, "client=")) != NULL) {
    take_path(out, word, text, node, out->client, sizeof out->client);
  } else if ((text = behind(word, "preload=")) != NULL) {
    out->preload[0] = '\0';
    if (strcmp(text, "none") != 0) {
      take_path(out, word, text, node, out->preload, sizeof out->preload);
    }
  } else if ((text = behind(word, "timeout_ms=")) != NULL) {
    take_ms(out, word, text, &out->timeout_ms);
  } else if ((text = behind(word, "gather_ms=")) != NULL) {
    take_ms(out, word, text, &out->gather_ms);
  } else if (strcmp(word, "on_error=fail") == 0) {
    out->on_error = TSP_FAIL;
  } else if (strcmp(word, "on_error=standalone") == 0) {
    out->on_error = TSP_STANDALONE;
  } else {
    complain(out, word,
             "is unknown; there are socket= timeout_ms= gather_ms= on_error=fail|standalone "
             "client= preload=");
  }
}

void tsp_words_read(int count, char** words, const char* node, struct tsp_words* out) {
  *out = (struct tsp_words){.timeout_ms = kTimeoutMs, .gather_ms = kGatherMs};
  strcpy(out->socket, TSL_SOCKET_DEFAULT);
  strcpy(out->preload, TSP_PRELOAD);
  for (int i = 0; i < count; ++i) take(out, words[i], node);
}

/* Keeps a server's log for a test that waits for a line. */
#include "tests/http/notes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000

static struct notes {
    pthread_mutex_t lock;
    char text[16384];
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

void notes_take(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    (void)level;
    (void)pthread_mutex_lock(&notes.lock);
    size_t used = strlen(notes.text);
    (void)snprintf(notes.text + used, sizeof(notes.text) - used, "%s %s\n", sentence, fields);
    (void)pthread_mutex_unlock(&notes.lock);
}

bool notes_have(const char *text)
{
    bool is_there = false;
    for (int waited = 0; waited < PATIENCE_MS && !is_there; waited += 5) {
        (void)pthread_mutex_lock(&notes.lock);
        is_there = strstr(notes.text, text) != NULL;
        (void)pthread_mutex_unlock(&notes.lock);
        (void)usleep(5000);
    }
    return is_there;
}

void notes_clear(void)
{
    notes.text[0] = '\0';
}

const char *notes_text(void)
{
    return notes.text;
}

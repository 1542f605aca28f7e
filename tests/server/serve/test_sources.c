/* The line of frames: who waits, who is replaced, whose turn it is. */
#include "server/serve/sources.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

#define FRAMES 12

struct frame {
    struct ifd_infer_request request;
    int ends; /* calls of done */
    enum ifd_code code;
    char text[sizeof(((struct ifd_err *)0)->text)];
    struct line *line;
    bool leaves; /* ends its turn before done returns, as what runs on the loop */
};

struct line {
    struct ifd_sources sources;
    struct frame frame[FRAMES];
    int turns[FRAMES], turn_count; /* in order */
};

static void line_begin(struct line *line, uint32_t turns, uint32_t waiting)
{
    memset(line, 0, sizeof(*line));
    line->sources = (struct ifd_sources){.most_turns = turns, .most_waiting = waiting};
    for (int i = 0; i < FRAMES; i++) {
        line->frame[i].line = line;
    }
}

static void on_turn(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct frame *frame = arg;
    struct line *line = frame->line;
    frame->ends++;
    frame->code = code;
    (void)snprintf(frame->text, sizeof(frame->text), "%s", err ? err->text : "");
    if (code == IFD_OK) {
        line->turns[line->turn_count++] = (int)(frame - line->frame);
    }
    if (frame->leaves) {
        ifd_sources_leave(&line->sources, &frame->request);
    }
}

static void enter_until(struct line *line, int index, const char *source, uint64_t deadline_ns)
{
    struct frame *frame = &line->frame[index];
    frame->request.source = ifd_str(source);
    ifd_sources_enter(&line->sources, &frame->request, deadline_ns, on_turn, frame);
}

static void enter(struct line *line, int index, const char *source)
{
    enter_until(line, index, source, 0);
}

static void leave(struct line *line, int index)
{
    ifd_sources_leave(&line->sources, &line->frame[index].request);
}

static void expect_turns(const struct line *line, const int *want, int count)
{
    EXPECT_INT(line->turn_count, count);
    for (int i = 0; i < count && i < line->turn_count; i++) {
        EXPECT_INT(line->turns[i], want[i]);
    }
}

static void turns_are_given_at_once_while_there_are_some(void)
{
    static struct line line;
    line_begin(&line, 2, 4);
    enter(&line, 0, "door");
    enter(&line, 1, "door"); /* what has its turn is not replaced */
    expect_turns(&line, (const int[]){0, 1}, 2);
    enter(&line, 2, "yard");
    EXPECT_INT(line.frame[2].ends, 0);
    EXPECT_INT(line.sources.waiting, 1);
    leave(&line, 1);
    expect_turns(&line, (const int[]){0, 1, 2}, 3);
    leave(&line, 0);
    leave(&line, 0); /* once more: nothing */
    leave(&line, 2);
    EXPECT_INT(line.sources.turns, 0);
}

static void a_newer_frame_takes_the_place_of_the_one_that_waits(void)
{
    static struct line line;
    line_begin(&line, 1, 4);
    enter(&line, 0, "hall");
    enter(&line, 1, "door");
    enter(&line, 2, "yard");
    enter(&line, 3, "door");
    EXPECT_INT(line.frame[1].ends, 1);
    EXPECT_INT(line.frame[1].code, IFD_EXISTS);
    EXPECT_TEXT(line.frame[1].text,
                "skipped: a newer frame of source 'door' came before this one ran");
    EXPECT_INT(line.sources.waiting, 2);
    enter(&line, 4, "doo"); /* another name */
    leave(&line, 0);
    leave(&line, 3);
    leave(&line, 2);
    expect_turns(&line, (const int[]){0, 3, 2, 4}, 4);
    leave(&line, 4);
    EXPECT_INT(line.frame[1].ends, 1);
}

/* However many frames one source sends meanwhile. */
static void sources_take_turns(void)
{
    static struct line line;
    line_begin(&line, 1, 4);
    enter(&line, 0, "hall");
    enter(&line, 1, "busy");
    enter(&line, 2, "calm");
    enter(&line, 3, "busy");
    leave(&line, 0);
    enter(&line, 4, "busy"); /* behind calm, since busy has its turn */
    enter(&line, 5, "busy");
    leave(&line, 3);
    leave(&line, 2);
    expect_turns(&line, (const int[]){0, 3, 2, 5}, 4);
    leave(&line, 5);
    EXPECT_INT(line.frame[4].code, IFD_EXISTS);
}

static void only_so_many_sources_wait(void)
{
    static struct line line;
    line_begin(&line, 1, 2);
    enter(&line, 0, "a");
    enter(&line, 1, "b");
    enter(&line, 2, "c");
    enter(&line, 3, "d");
    EXPECT_INT(line.frame[3].code, IFD_BUSY);
    EXPECT_HAS(line.frame[3].text, "frames of 2 sources wait");
    leave(&line, 3);      /* it never waited */
    enter(&line, 4, "c"); /* takes no further place */
    EXPECT_INT(line.frame[2].code, IFD_EXISTS);
    EXPECT_INT(line.frame[4].ends, 0);
    EXPECT_INT(line.sources.turns, 1);
    ifd_sources_clear(&line.sources);
}

static void frames_that_leave_the_line_are_not_called(void)
{
    static struct line line;
    line_begin(&line, 1, 4);
    enter(&line, 0, "a");
    enter(&line, 1, "b");
    enter(&line, 2, "c");
    enter(&line, 3, "d");
    leave(&line, 2); /* in the middle, at the end, at the begin */
    leave(&line, 3);
    leave(&line, 1);
    EXPECT_INT(line.sources.waiting, 0);
    leave(&line, 0);
    expect_turns(&line, (const int[]){0}, 1);
    for (int i = 1; i < 4; i++) {
        EXPECT_INT(line.frame[i].ends, 0);
    }
}

static void frames_wait_no_longer_than_their_deadline(void)
{
    static struct line line;
    line_begin(&line, 1, 4);
    enter(&line, 0, "a");
    enter_until(&line, 1, "b", 200);
    enter_until(&line, 2, "c", 100);
    enter_until(&line, 3, "d", 100);
    enter(&line, 4, "e"); /* has none */
    ifd_sources_expire(&line.sources, 99);
    EXPECT_INT(line.sources.waiting, 4);
    ifd_sources_expire(&line.sources, 100);
    EXPECT_INT(line.sources.waiting, 2);
    EXPECT_INT(line.frame[2].code, IFD_DEADLINE);
    EXPECT_INT(line.frame[3].code, IFD_DEADLINE);
    enter_until(&line, 5, "b", 300); /* the newer frame's own deadline counts */
    ifd_sources_expire(&line.sources, 250);
    EXPECT_INT(line.frame[5].ends, 0);
    ifd_sources_clear(&line.sources);
    EXPECT_INT(line.frame[5].code, IFD_UNAVAILABLE);
    EXPECT_INT(line.frame[4].code, IFD_UNAVAILABLE);
    EXPECT_INT(line.frame[0].ends, 1);
    leave(&line, 0);
}

/* One call of done at a time, however many turns end at once. */
static void turns_that_end_at_once_make_room_for_the_next(void)
{
    static struct line line;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    line_begin(&line, 1, 8);
    enter(&line, 0, "first");
    for (int i = 1; i < 6; i++) {
        line.frame[i].leaves = true;
        enter(&line, i, names[i - 1]);
    }
    leave(&line, 0);
    expect_turns(&line, (const int[]){0, 1, 2, 3, 4, 5}, 6);
    EXPECT_INT(line.sources.turns, 0);
    EXPECT(line.sources.first == NULL && line.sources.last == NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(turns_are_given_at_once_while_there_are_some),
        T(a_newer_frame_takes_the_place_of_the_one_that_waits),
        T(sources_take_turns),
        T(only_so_many_sources_wait),
        T(frames_that_leave_the_line_are_not_called),
        T(frames_wait_no_longer_than_their_deadline),
        T(turns_that_end_at_once_make_room_for_the_next),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

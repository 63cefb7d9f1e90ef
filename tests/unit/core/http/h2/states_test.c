// SPDX-License-Identifier: Apache-2.0
/* Each frame of a stream in each of its states: RFC 9113 section 5.1. */
#include "http/h2_fixture.h"

enum { IDLE, OPEN, HALF_CLOSED_REMOTE, HALF_CLOSED_LOCAL, RESET_LOCAL, RESET_REMOTE, CLOSED, SKIPPED, STATES };
enum { DATA_FRAME, TRAILERS, NOT_TRAILERS, PRIORITY_FRAME, RST_FRAME, UPDATE, UPDATE_OF_0, FRAMES };

/* Brings stream 1 to a state. Streams 3 and 5 are idle, except that 3 was opened for SKIPPED. */
static struct mk_test_h2 bring_to(int state)
{
    struct mk_test_h2 t = h2_open(state == OPEN || state == HALF_CLOSED_REMOTE ? remember : NULL);
    switch (state) {
    case HALF_CLOSED_REMOTE:
    case CLOSED:
        h2_get_path(&t, 1, "/");
        break;
    case OPEN:
    case HALF_CLOSED_LOCAL:
    case RESET_LOCAL:
    case RESET_REMOTE:
        h2_post(&t, 1);
        break;
    case SKIPPED:
        h2_get_path(&t, 3, "/");
        break;
    }
    if (state == RESET_LOCAL)
        h2_window(&t, 1, 0);
    else if (state == RESET_REMOTE)
        h2_rst(&t, 1);
    h2_expect(&t, "*");
    return t;
}

static void send_frame(struct mk_test_h2 *t, int frame)
{
    switch (frame) {
    case DATA_FRAME:
        h2_data(t, 1, 0, MK_STR("x"));
        break;
    case TRAILERS:
        h2_head(t, 1, END_HEADERS | END_STREAM, "x 1");
        break;
    case NOT_TRAILERS:
        h2_head(t, 1, END_HEADERS, "x 1");
        break;
    case PRIORITY_FRAME:
        h2_frame(t, NGHTTP2_PRIORITY, 0, 1, MK_STR("\0\0\0\3\20"));
        break;
    case RST_FRAME:
        h2_rst(t, 1);
        break;
    default:
        h2_window(t, 1, frame == UPDATE ? 1000 : 0);
    }
}

#define CONNECTION(error) "GOAWAY(*," #error ")"
#define STREAM(error) "1:RST(" #error ")"

TEST(frames_by_state)
{
    static const char *const heard[STATES][FRAMES] = {
        [IDLE] = {CONNECTION(1), STREAM(1), STREAM(1), "", CONNECTION(1), CONNECTION(1), CONNECTION(1)},
        [OPEN] = {"", "", STREAM(1), "", "", "", STREAM(1)},
        [HALF_CLOSED_REMOTE] = {STREAM(5), STREAM(5), STREAM(5), "", "", "", STREAM(1)},
        [HALF_CLOSED_LOCAL] = {"", "", STREAM(1), "", "", "", STREAM(1)},
        [RESET_LOCAL] = {"", "", "", "", "", "", ""},
        [RESET_REMOTE] = {CONNECTION(5), CONNECTION(5), CONNECTION(5), "", "", "", ""},
        [CLOSED] = {CONNECTION(5), CONNECTION(5), CONNECTION(5), "", "", "", ""},
        [SKIPPED] = {CONNECTION(1), CONNECTION(1), CONNECTION(1), "", CONNECTION(1), CONNECTION(1), CONNECTION(1)},
    };
    for (int st = 0; st < STATES; st++)
        for (int frame = 0; frame < FRAMES; frame++) {
            struct mk_test_h2 t = bring_to(st);
            send_frame(&t, frame);
            mk_test_settle(&w);
            h2_listen(&t);
            if (fnmatch(heard[st][frame], t.log.len ? t.log.p + 1 : "", 0) != 0)
                fail_msg("frame %d in state %d: heard \"%s\"", frame, st, t.log.p);
            bool lives = !mk_str_starts(mk_str_c(heard[st][frame]), MK_STR("GOAWAY"));
            t.log.len = 0;
            w.handler = NULL;
            h2_get_path(&t, 5, "/"); /* the table of HPACK and the windows are right */
            h2_expect(&t, lives ? HELLO_OF(5) : "");
            mk__conn_abort_all(&w.http);
            h2_close(&t);
        }
}

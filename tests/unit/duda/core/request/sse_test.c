// SPDX-License-Identifier: Apache-2.0
/* The text of server-sent events. */
#include "testing.h"

#include <errno.h>

#include "duda/core/request/sse.h"

static const struct {
    const char *type, *id, *data, *text; /* text NULL: refused */
} events[] = {
    {NULL, NULL, "a", "data: a\n\n"},
    {NULL, NULL, "", "data: \n\n"},
    {"tick", "7", "a", "event: tick\nid: 7\ndata: a\n\n"},
    {"", "", "a", "event: \nid: \ndata: a\n\n"},
    {NULL, NULL, "a\nb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\r\nb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\rb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\n", "data: a\ndata: \n\n"},
    {NULL, NULL, "\n", "data: \ndata: \n\n"},
    {NULL, NULL, "\r\n\r\n", "data: \ndata: \ndata: \n\n"},
    {NULL, NULL, "\n\r", "data: \ndata: \ndata: \n\n"},
    {NULL, NULL, ": comment", "data: : comment\n\n"},
    {"a\nb", NULL, "x", NULL},
    {"a\rb", NULL, "x", NULL},
    {NULL, "1\n", "x", NULL},
    {NULL, "\r", "x", NULL},
};

TEST(events)
{
    for (size_t i = 0; i < COUNT(events); i++) {
        char text[256];
        struct mk_buf out;
        size_t len = strlen(events[i].data);
        char *data = mk_test_guarded(events[i].data, len);
        mk_buf_init_fixed(&out, text, sizeof(text));
        int err = sse_format(&out, mk_str_c(events[i].type), mk_str_c(events[i].id), mk_str(data, len));
        assert_int_equal(err, events[i].text ? 0 : -EINVAL);
        if (events[i].text)
            assert_str_equal(mk_buf_str(&out), events[i].text);
        else
            assert_int_equal(out.len, 0);
        mk_test_unguard(data, len);
    }
}

TEST(an_event_that_is_too_long)
{
    char text[8];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    assert_int_equal(sse_format(&out, MK_STR_NONE, MK_STR_NONE, MK_STR("abc")), -ENOBUFS);
}

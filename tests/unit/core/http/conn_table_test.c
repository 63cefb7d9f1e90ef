// SPDX-License-Identifier: Apache-2.0
/* Checks the table of connection states, and generates the table in docs/internals. */
#include "http/drawing.h"

#include "http/h1/h1.h"

static uint16_t reachable_from(enum mk__conn_state state)
{
    uint16_t seen = (uint16_t)(1u << state), before = 0;
    while (seen != before) {
        before = seen;
        for (unsigned s = 0; s < MK__CONN_STATES; s++)
            if (seen & 1u << s)
                seen |= mk__conn_states[s].next;
    }
    return seen;
}

TEST(the_table_is_sound)
{
    assert_int_equal(reachable_from(MK__CONN_HANDSHAKE), (1u << MK__CONN_STATES) - 1);
    for (unsigned s = 0; s < MK__CONN_STATES; s++) {
        const struct mk__state_info *wait = &mk__conn_states[s];
        assert_true(wait->name && wait->name[0]);
        assert_int_equal(wait->next >> MK__CONN_STATES, 0);
        assert_true(reachable_from(s) & 1u << MK__CONN_CLOSED);
        if (s == MK__CONN_CLOSED) {
            assert_int_equal(wait->next, 0);
            assert_int_equal(wait->want, 0);
            continue;
        }
        assert_true(wait->timeout < MK__TIMEOUTS || s == MK__CONN_STREAMS); /* there each stream has a timeout */
        assert_true(wait->next & 1u << MK__CONN_CLOSED);                    /* from every state */
        for (unsigned other = 0; other < s; other++)
            assert_string_not_equal(wait->name, mk__conn_states[other].name);
    }
}

enum {
    HTTP1_ONLY = 1u << MK__CONN_READ_BODY | 1u << MK__CONN_HANDLER | 1u << MK__CONN_DISK | 1u << MK__CONN_WRITE |
                 1u << MK__CONN_TUNNEL,
    HTTP2_ONLY = 1u << MK__CONN_STREAMS | 1u << MK__CONN_STREAMS_WRITE
};

/* A connection switches to HTTP/2 before its first request or not at all: no state of one leads to one of the other. */
TEST(protocols_do_not_mix)
{
    for (unsigned s = 0; s < MK__CONN_STATES; s++) {
        if (1u << s & HTTP1_ONLY)
            assert_int_equal(mk__conn_states[s].next & HTTP2_ONLY, 0);
        if (1u << s & HTTP2_ONLY)
            assert_int_equal(mk__conn_states[s].next & HTTP1_ONLY, 0);
    }
}

/* A timeout that is answered is one of a request that has begun; only connections without a response are evicted. */
TEST(timeouts_and_eviction)
{
    for (unsigned s = 0; s < MK__CONN_STATES; s++) {
        const struct mk__state_info *wait = &mk__conn_states[s];
        assert_int_equal(wait->on_timeout == MK__ON_TIMEOUT_RESPOND, wait->timeout_status != 0);
        if (wait->timeout_status)
            assert_int_not_equal(wait->evict, MK__CONN_EVICT_FIRST);
        if (wait->idle) /* no request is lost: it ends without haste, and before others */
            assert_true(wait->on_timeout == MK__ON_TIMEOUT_CLOSE && wait->evict != MK__CONN_EVICT_NEVER);
        if (wait->notifies_handler)
            assert_int_equal(wait->timeout, MK__TIMEOUT_HANDLER);
        if (wait->evict != MK__CONN_EVICT_NEVER)
            assert_false(wait->restarts);
    }
}

static const char *const limit_names[MK__TIMEOUTS + 1] = {
    [MK__TIMEOUT_HEAD] = "`Timeout`",
    [MK__TIMEOUT_BODY] = "`BodyTimeout`",
    [MK__TIMEOUT_HANDLER] = "`HandlerTimeout`",
    [MK__TIMEOUT_SEND] = "`SendTimeout`",
    [MK__TIMEOUT_IDLE] = "`KeepAliveTimeout`",
    [MK__TIMEOUT_LINGER] = "`LingerTimeout`",
    [MK__TIMEOUT_TUNNEL] = "`TunnelTimeout`",
    [MK__TIMEOUT_HANDSHAKE] = "`HandshakeTimeout`",
    [MK__TIMEOUTS] = "the streams have their own limits",
};

static const char *const want_names[] = {[0] = "the server itself",
                                         [MK__CONN_WANT_READ] = "bytes of the client",
                                         [MK__CONN_WANT_WRITE] = "room for bytes",
                                         [MK__CONN_WANT_READ | MK__CONN_WANT_WRITE] =
                                             "bytes of the client, or room for them"};

static const char *const evict_names[] = {
    [MK__CONN_EVICT_NEVER] = "", [MK__CONN_EVICT_FIRST] = "first", [MK__CONN_EVICT_LAST] = "last"};

static const char *timeout_name(const struct mk__state_info *wait)
{
    static const char *const names[] = {
        [MK__ON_TIMEOUT_ABORT] = "abort", [MK__ON_TIMEOUT_CLOSE] = "close", [MK__ON_TIMEOUT_RESPOND] = "503"};
    if (wait->timeout == MK__TIMEOUTS)
        return "";
    return wait->timeout_status == 408 ? "408" : names[wait->on_timeout];
}

static void draw(char *to, size_t size)
{
    int n = snprintf(to, size,
                     "| state | waits for | at most | then | evicted | may be followed by |\n"
                     "|---|---|---|---|---|---|\n");
    for (unsigned s = 1; s < MK__CONN_STATES; s++) {
        const struct mk__state_info *wait = &mk__conn_states[s];
        n += snprintf(to + n, size - (size_t)n, "| %s | %s | %s%s | %s | %s |", wait->name, want_names[wait->want],
                      limit_names[wait->timeout], wait->restarts ? " without progress" : "", timeout_name(wait),
                      evict_names[wait->evict]);
        for (unsigned next = 0; next < MK__CONN_STATES; next++)
            if (wait->next & 1u << next)
                n += snprintf(to + n, size - (size_t)n, " %s", mk__conn_states[next].name);
        n += snprintf(to + n, size - (size_t)n, " |\n");
    }
}

TEST(the_page_shows_the_table)
{
    char drawing[4096];
    draw(drawing, sizeof(drawing));
    mk_test_draw("<!-- begin: generated by the unit test http-conn_table -->\n", drawing);
}

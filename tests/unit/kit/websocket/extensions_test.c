// SPDX-License-Identifier: Apache-2.0
/* Sec-WebSocket-Extensions: what a server chooses and answers, what a client offers and accepts. */
#include "testing.h"

#include <errno.h>

#include "websocket/ws.h"

typedef struct mk__ws_deflate_params params;

static const params ours_15 = {.on = true, .server_bits = 15, .client_bits = 15};
static const params ours_12 = {.on = true, .server_bits = 12, .client_bits = 12};
static const params ours_bare = {
    .on = true, .server_no_context = true, .client_no_context = true, .server_bits = 15, .client_bits = 15};
static const params off = {.server_bits = 15, .client_bits = 15};

#define PD "permessage-deflate"
#define SNC "; server_no_context_takeover"
#define CNC "; client_no_context_takeover"
#define SB "; server_max_window_bits"
#define CB "; client_max_window_bits"

/* ── the server ── */

static const struct choice {
    const char *line;
    const params *ours;
    const char *response; /* "": none, NULL: -EINVAL */
} choices[] = {
    {"", &ours_15, ""},
    {PD, &ours_15, PD},
    {" \t" PD " ", &ours_15, PD},
    {"Permessage-Deflate", &ours_15, PD},
    {PD CB, &ours_15, PD}, /* Chrome */
    {PD, &off, ""},
    {"x-webkit-deflate-frame", &ours_15, ""},
    {"permessage-deflat", &ours_15, ""},
    {PD SNC, &ours_15, PD SNC},
    {PD CNC, &ours_15, PD CNC},
    {PD SNC CNC, &ours_15, PD SNC CNC},
    {PD SB "=10", &ours_15, PD SB "=10"},
    {PD SB "=15", &ours_15, PD SB "=15"},
    {PD CB "=10", &ours_15, PD CB "=10"},
    {PD CB "=8", &ours_15, PD CB "=8"},
    {PD CB "=15", &ours_15, PD},
    {PD SB "=9" CB "=14", &ours_15, PD SB "=9" CB "=14"},
    {"permessage-deflate;CLIENT_MAX_WINDOW_BITS ;\tserver_no_context_takeover", &ours_15, PD SNC},
    {PD SB "=\"10\"", &ours_15, PD SB "=10"},
    {PD SB " = \"\\1\\0\" ", &ours_15, PD SB "=10"},

    /* limits of our own */
    {PD, &ours_bare, PD SNC CNC},
    {PD CB, &ours_12, PD SB "=12" CB "=12"},
    {PD CB "=10" SB "=13", &ours_12, PD SB "=12" CB "=10"},
    {PD CB "=14" SB "=9", &ours_12, PD SB "=9" CB "=12"},
    {PD, &ours_12, ""}, /* the client has not offered to use less */

    /* declined */
    {PD SB, &ours_15, ""},
    {PD SB "=8", &ours_15, ""},
    {PD SB "=7", &ours_15, ""},
    {PD SB "=16", &ours_15, ""},
    {PD SB "=010", &ours_15, ""},
    {PD SB "=09", &ours_15, ""},
    {PD CB "=7", &ours_15, ""},
    {PD SNC "=10", &ours_15, ""},
    {PD SB "=100", &ours_15, ""},
    {PD SB "=10000000000000000000000000000010", &ours_15, ""},
    {PD SB "=\"101\"", &ours_15, ""},
    {PD SB "=1x", &ours_15, ""},
    {PD SB "=+9", &ours_15, ""},
    {PD CB "=0", &ours_15, ""},
    {PD CB "=16", &ours_15, ""},
    {PD SNC "=1", &ours_15, ""},
    {PD CNC "=x", &ours_15, ""},
    {PD SNC SNC, &ours_15, ""},
    {PD CB CB "=10", &ours_15, ""},
    {PD "; unheard", &ours_15, ""},
    {PD "; server_max_window_bit=10", &ours_15, ""},

    /* several */
    {PD SB "=8," PD SB "=11," PD, &ours_15, PD SB "=11"},
    {"foo, bar; a=\"b\";c , " PD, &ours_15, PD},
    {PD "; unheard, " PD, &ours_15, PD},
    {PD ", " PD CB, &ours_12, PD SB "=12" CB "=12"},
    {",, ," PD ",,", &ours_15, PD},
    {"a,b,c,d,e,f,g," PD, &ours_15, PD},
    {"a,b,c,d,e,f,g,h," PD, &ours_15, ""}, /* beyond the limit */

    /* malformed */
    {PD ";", &ours_15, NULL},
    {PD "; ", &ours_15, NULL},
    {PD ";;", &ours_15, NULL},
    {PD " foo", &ours_15, NULL},
    {PD CB "=", &ours_15, NULL},
    {PD CB "=,", &ours_15, NULL},
    {PD CB "=\"\"", &ours_15, NULL},
    {PD CB "=\"10", &ours_15, NULL},
    {PD CB "=\"10\\", &ours_15, NULL},
    {PD CB "=\"1 0\"", &ours_15, NULL},
    {PD CB "=\"10\"0", &ours_15, NULL},
    {PD CB "=10 11", &ours_15, NULL},
    {PD "=10", &ours_15, NULL},
    {PD "; =10", &ours_15, NULL},
    {";" PD, &ours_15, NULL},
    {"\"" PD "\"", &ours_15, NULL},
    {PD "/", &ours_15, NULL},
    {PD "\x80", &ours_15, NULL},
    {"a, b; c=\", " PD, &ours_15, NULL},
    {PD ", (", &ours_15, NULL},
};

static int choose(const char *line, const params *ours, params *p)
{
    size_t n = strlen(line);
    char *bytes = mk_test_guarded(line, n);
    int result = mk__ws_deflate_choose(mk_str(bytes, n), ours, p);
    mk_test_unguard(bytes, n);
    return result;
}

TEST(chooses_offers)
{
    for (const struct choice *c = choices; c < choices + COUNT(choices); c++) {
        params p = {};
        struct mk_buf b;
        int result = choose(c->line, c->ours, &p);
        if (result != (c->response ? 0 : -EINVAL))
            fail_msg("%s: %d", c->line, result);
        if (!c->response)
            continue;
        assert_int_equal(p.on, *c->response != '\0');
        mk_buf_init(&b, 4096);
        if (p.on)
            mk__ws_deflate_write_response(&b, &p);
        assert_str_equal(mk_buf_str(&b), c->response);
        mk_buf_release(&b);
    }
}

TEST(chooses_among_lines)
{
    params p = {};
    assert_int_equal(choose("foo, " PD "; unheard", &ours_15, &p), 0);
    assert_false(p.on);
    assert_int_equal(choose(PD SB "=10", &ours_15, &p), 0);
    assert_int_equal(choose(PD SB "=11", &ours_15, &p), 0);
    assert_true(p.on);
    assert_int_equal(p.server_bits, 10);
    assert_int_equal(choose("=", &ours_15, &p), -EINVAL);
}

/* Any beginning of a line is read to its end and not beyond it. */
TEST(reads_beginnings)
{
    static const char line[] = PD SB "=\"1\\0\"; client_max_window_bits = 12 , foo;bar=\"a\" , " PD;
    for (size_t n = 0; n < sizeof(line); n++) {
        params p = {};
        char *bytes = mk_test_guarded(line, n);
        int result = mk__ws_deflate_choose(mk_str(bytes, n), &ours_15, &p);
        assert_true(result == 0 || result == -EINVAL);
        mk_test_unguard(bytes, n);
    }
}

/* ── the client ── */

TEST(writes_offers)
{
    static const struct {
        const params *ours;
        const char *offer;
    } rows[] = {{&ours_15, PD CB}, {&ours_12, PD SB "=12" CB "=12"}, {&ours_bare, PD SNC CNC CB}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_buf b;
        mk_buf_init(&b, 4096);
        mk__ws_deflate_write_offer(&b, rows[i].ours);
        assert_str_equal(mk_buf_str(&b), rows[i].offer);
        mk_buf_release(&b);
    }
}

static const struct answer {
    const char *line;
    const params *ours;
    bool fine;
    params negotiated;
} answers[] = {
    {"", &ours_15, true, {}},
    {"", &off, true, {}},
    {PD, &ours_15, true, {.on = true, .server_bits = 15, .client_bits = 15}},
    {PD SNC CNC, &ours_15, true, {true, true, true, false, 15, 15}},
    {PD SNC, &ours_bare, true, {true, true, true, false, 15, 15}},
    {PD SB "=8" CB "=9", &ours_15, true, {.on = true, .server_bits = 8, .client_bits = 9}},
    {PD SB "=12" CB "=15", &ours_12, true, {.on = true, .server_bits = 12, .client_bits = 12}},
    {PD SB "=10", &ours_12, true, {.on = true, .server_bits = 10, .client_bits = 12}},

    {PD, &off, false, {}},
    {"foo", &ours_15, false, {}},
    {PD ", foo", &ours_15, false, {}},
    {PD "," PD, &ours_15, false, {}},
    {PD, &ours_bare, false, {}}, /* without server_no_context_takeover */
    {PD, &ours_12, false, {}},   /* a larger window */
    {PD SB "=13", &ours_12, false, {}},
    {PD CB, &ours_15, false, {}},
    {PD CB "=8", &ours_15, false, {}},
    {PD SB, &ours_15, false, {}},
    {PD SB "=16", &ours_15, false, {}},
    {PD SNC SNC, &ours_15, false, {}},
    {PD "; unheard", &ours_15, false, {}},
    {PD ";", &ours_15, false, {}},
    {"(", &ours_15, false, {}},
};

TEST(checks_responses)
{
    for (const struct answer *a = answers; a < answers + COUNT(answers); a++) {
        params p = {};
        const char *reason = NULL;
        size_t n = strlen(a->line);
        char *bytes = mk_test_guarded(a->line, n);
        if (mk__ws_deflate_check(mk_str(bytes, n), a->ours, &p, &reason) != (a->fine ? 0 : -EINVAL))
            fail_msg("%s: %s", a->line, reason);
        assert_int_equal(reason != NULL, !a->fine);
        if (a->fine)
            assert_memory_equal(&p, &a->negotiated, sizeof(p));
        mk_test_unguard(bytes, n);
    }
}

TEST(checks_responses_of_several_lines)
{
    params p = {};
    const char *reason = NULL;
    assert_int_equal(mk__ws_deflate_check(MK_STR(PD), &ours_15, &p, &reason), 0);
    assert_int_equal(mk__ws_deflate_check(MK_STR(""), &ours_15, &p, &reason), 0);
    assert_int_equal(mk__ws_deflate_check(MK_STR(PD), &ours_15, &p, &reason), -EINVAL);
}

/* What a server writes, the client that made the offer accepts, with the same result. */
TEST(both_sides_agree)
{
    for (unsigned i = 0; i < 4 * 7 * 7 * 4 * 7 * 7; i++) {
        params client = {true, i & 1, i & 2, false, (uint8_t)(9 + i / 16 % 7), (uint8_t)(9 + i / 112 % 7)};
        params server = {true, i & 4, i & 8, false, (uint8_t)(9 + i / 784 % 7), (uint8_t)(9 + i / 5488 % 7)};
        params chosen = {}, accepted = {};
        struct mk_buf offer, response;
        const char *reason = NULL;
        mk_buf_init(&offer, 512);
        mk_buf_init(&response, 512);
        mk__ws_deflate_write_offer(&offer, &client);
        assert_int_equal(mk__ws_deflate_choose(mk_buf_str(&offer), &server, &chosen), 0);
        assert_true(chosen.on);
        mk__ws_deflate_write_response(&response, &chosen);
        assert_int_equal(mk__ws_deflate_check(mk_buf_str(&response), &client, &accepted, &reason), 0);
        chosen.write_server_bits = false;
        assert_memory_equal(&chosen, &accepted, sizeof(chosen));
        assert_true(chosen.server_bits <= client.server_bits && chosen.server_bits <= server.server_bits);
        assert_true(chosen.client_bits <= client.client_bits && chosen.client_bits <= server.client_bits);
        mk_buf_release(&offer);
        mk_buf_release(&response);
    }
}

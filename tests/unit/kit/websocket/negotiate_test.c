// SPDX-License-Identifier: Apache-2.0
/* What a handshake of a client and the settings agree on. */
#include "testing.h"

#include <stdlib.h>

#include "websocket/ws.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

/* A handshake that is right. */
static struct mk_ws_request make_request(void)
{
    return (struct mk_ws_request){
        .upgrade = MK_STR("websocket"),
        .key = MK_STR(KEY),
        .version = MK_STR("13"),
        .host = MK_STR("example.com"),
        .is_get = true,
        .is_http1 = true,
    };
}

static const struct mk_ws_settings defaults;

static int agree(const struct mk_ws_request *r, const struct mk_ws_settings *settings, struct mk_ws_negotiated *ret)
{
    const char *reason = NULL;
    int status = mk_ws_negotiate(r, settings, ret, &reason);
    if (status == 101)
        assert_null(reason);
    else
        assert_non_null(reason);
    return status;
}

TEST(statuses)
{
    static const struct {
        const char *upgrade, *key, *version, *origin;
        bool post, h2;
        int status;
    } rows[] = {
        {"websocket", KEY, "13", NULL, false, false, 101},
        {"h2c, WebSocket", KEY, "13", "http://example.com", false, false, 101},
        {"websocket", NULL, "13", NULL, false, true, 101}, /* no key over HTTP/2 */
        {"websocket", KEY, "13", NULL, true, false, 400},
        {NULL, KEY, "13", NULL, false, false, 400},
        {"", KEY, "13", NULL, false, false, 400},
        {"websocketx", KEY, "13", NULL, false, false, 400},
        {"websocket", NULL, "13", NULL, false, false, 400},
        {"websocket", "", "13", NULL, false, false, 400},
        {"websocket", KEY ", " KEY, "13", NULL, false, false, 400},
        {"websocket", KEY, NULL, NULL, false, false, 400},
        {"websocket", KEY, "", NULL, false, false, 426},
        {"websocket", KEY, "12", NULL, false, false, 426},
        {"websocket", KEY, "13, 13", NULL, false, false, 426},
        {"websocket", KEY, "13", "http://elsewhere", false, false, 403},
        {"websocket", KEY, "13", "null", false, false, 403},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct mk_ws_request r = make_request();
        struct mk_ws_negotiated a;
        r.upgrade = rows[i].upgrade ? mk_str_c(rows[i].upgrade) : MK_STR_NONE;
        r.key = rows[i].key ? mk_str_c(rows[i].key) : MK_STR_NONE;
        r.version = rows[i].version ? mk_str_c(rows[i].version) : MK_STR_NONE;
        r.origin = rows[i].origin ? mk_str_c(rows[i].origin) : MK_STR_NONE;
        r.is_get = !rows[i].post;
        r.is_http1 = !rows[i].h2;
        int status = agree(&r, &defaults, &a);
        if (status != rows[i].status)
            fail_msg("row %zu: %d", i, status);
        if (status == 101)
            assert_string_equal(a.accept, rows[i].h2 ? "" : "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_false(a.deflate || a.is_client);
        assert_string_equal(a.extensions, "");
    }
}

TEST(origins)
{
    const struct mk_ws_settings listed = {.origins = "https://a.example, http://b.example:81"};
    const struct mk_ws_settings any = {.origins = "*"};
    struct mk_ws_request r = make_request();
    struct mk_ws_negotiated a;
    r.origin = MK_STR("https://example.com");
    assert_int_equal(agree(&r, &defaults, &a), 403);
    r.is_tls = true;
    assert_int_equal(agree(&r, &defaults, &a), 101);
    r.origin = MK_STR("http://b.example:81");
    assert_int_equal(agree(&r, &defaults, &a), 403);
    assert_int_equal(agree(&r, &listed, &a), 101);
    r.origin = MK_STR("what is this");
    assert_int_equal(agree(&r, &listed, &a), 403);
    assert_int_equal(agree(&r, &any, &a), 101);
}

TEST(protocols)
{
    const char supported[] = "chat, superchat,x";
    const struct mk_ws_settings settings = {.protocols = supported};
    static const char *const rows[][2] = {
        {"chat", "chat"}, {"superchat, chat", "superchat"}, {"soap,x", "x"}, {"soap", ""}, {"", ""}, {"CHAT", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct mk_ws_request r = make_request();
        struct mk_ws_negotiated a;
        char *offered = strdup(rows[i][0]); /* what was negotiated does not point into the request */
        r.protocols = mk_str_c(offered);
        assert_int_equal(agree(&r, &settings, &a), 101);
        free(offered);
        assert_int_equal(a.protocol.len, strlen(rows[i][1]));
        assert_memory_equal(a.protocol.p, rows[i][1], a.protocol.len);
        if (a.protocol.len)
            assert_true(a.protocol.p >= supported && a.protocol.p < supported + sizeof(supported));
        r.protocols = MK_STR("chat");
        assert_int_equal(agree(&r, &defaults, &a), 101);
        assert_int_equal(a.protocol.len, 0);
    }
}

TEST(compression)
{
    const struct mk_ws_settings with_context = {.context_takeover = true}, off = {.no_deflate = true};
    static const struct {
        const char *offer;
        bool context;
        const char *response;
        unsigned send_bits, receive_bits;
        bool send_context, receive_context;
    } rows[] = {
        {"permessage-deflate", false, "permessage-deflate; server_no_context_takeover; client_no_context_takeover", 15,
         15, false, false},
        {"permessage-deflate", true, "permessage-deflate", 15, 15, true, true},
        {"permessage-deflate; client_max_window_bits", true, "permessage-deflate", 15, 15, true, true},
        {"permessage-deflate; client_max_window_bits=9; server_max_window_bits=10", true,
         "permessage-deflate; server_max_window_bits=10; client_max_window_bits=9", 10, 9, true, true},
        /* the longest response */
        {"permessage-deflate; client_no_context_takeover; server_no_context_takeover; server_max_window_bits=15; "
         "client_max_window_bits=14",
         true,
         "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=15; "
         "client_max_window_bits=14",
         15, 14, false, false},
        {"x-other, permessage-deflate", true, "permessage-deflate", 15, 15, true, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct mk_ws_request r = make_request();
        struct mk_ws_negotiated a;
        r.extensions = mk_str_c(rows[i].offer);
        assert_int_equal(agree(&r, rows[i].context ? &with_context : &defaults, &a), 101);
        assert_true(a.deflate);
        assert_string_equal(a.extensions, rows[i].response);
        assert_int_equal(a.send_bits, rows[i].send_bits);
        assert_int_equal(a.receive_bits, rows[i].receive_bits);
        assert_int_equal(a.send_context, rows[i].send_context);
        assert_int_equal(a.receive_context, rows[i].receive_context);
        assert_int_equal(agree(&r, &off, &a), 101);
        assert_false(a.deflate);
        assert_string_equal(a.extensions, "");
    }
}

TEST(offers_that_are_declined)
{
    static const char *const offers[] = {"",
                                         "x",
                                         "permessage-deflate; x",
                                         "permessage-deflate; ;",
                                         ", ,",
                                         "\"",
                                         "=",
                                         "permessage-deflate; server_max_window_bits"};
    for (size_t i = 0; i < sizeof(offers) / sizeof(*offers); i++) {
        struct mk_ws_request r = make_request();
        struct mk_ws_negotiated a;
        r.extensions = mk_str_c(offers[i]);
        assert_int_equal(agree(&r, &defaults, &a), 101);
        assert_false(a.deflate);
    }
}

/* Nothing behind a value is read: each ends at a page that cannot be read. */
TEST(values_at_the_end_of_a_page)
{
    static const char *const values[] = {
        "websocket",     KEY, "13", "chat", "permessage-deflate; client_max_window_bits", "http://example.com:80",
        "example.com:80"};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        for (size_t n = 0; n <= strlen(values[i]); n++) {
            char *guarded = mk_test_guarded(values[i], n);
            struct mk_ws_request r = make_request();
            struct mk_ws_negotiated a;
            struct mk_str value = mk_str(guarded, n);
            struct mk_str *const fields[] = {&r.upgrade,    &r.key,    &r.version, &r.protocols,
                                             &r.extensions, &r.origin, &r.host};
            *fields[i] = value;
            const char *reason;
            const struct mk_ws_settings settings = {.protocols = "chat", .origins = "http://a"};
            mk_ws_negotiate(&r, &settings, &a, &reason);
            mk_test_unguard(guarded, n);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
/* Key, version, subprotocol and origin of the opening handshake; each value touches a guard page. */
#include "testing.h"

#include "websocket/ws.h"

TEST(computes_the_accept_of_the_rfc)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    mk_ws_accept_key(accept, MK_STR("dGhlIHNhbXBsZSBub25jZQ=="));
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    mk_ws_accept_key(accept, MK_STR("x3JJHMbDL1EzLkh9GBhXDw=="));
    assert_string_equal(accept, "HSmrc0sMlYUkAGmm5OPpG2HaGWk=");
}

TEST(makes_keys)
{
    char key[MK_WS_KEY_BYTES + 1];
    mk_ws_key_make(key, (const uint8_t *)"the sample nonce");
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    assert_true(mk__ws_key_is_valid(mk_str_c(key)));
}

TEST(knows_keys)
{
    static const struct {
        const char *key;
        bool valid;
    } rows[] = {
        {"dGhlIHNhbXBsZSBub25jZQ==", true},      {"AAAAAAAAAAAAAAAAAAAAAA==", true},
        {"+/+/+/+/+/+/+/+/+/+/+/==", true},      {"", false},
        {"dGhlIHNhbXBsZSBub25jZQ=", false},      {"dGhlIHNhbXBsZSBub25jZQ===", false},
        {"dGhlIHNhbXBsZSBub25jZQAA", false},     {"dGhlIHNhbXBsZSBub25jZ===", false},
        {"dGhlIHNhbXBsZSBub25jZQ=A", false},     {"dGhlIHNhbXBsZSBub25jZQA=", false},
        {"dGhlIHNhbXBsZSBub25j Q==", false},     {"-_AAAAAAAAAAAAAAAAAAAA==", false},
        {"dGhlIHNhbXBsZSBub25jZQ==\r\n", false}, {"dGhlIHNhbXBsZSBub25jZTE3", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].key);
        char *key = mk_test_guarded(rows[i].key, n);
        if (mk__ws_key_is_valid(mk_str(key, n)) != rows[i].valid)
            fail_msg("%s", rows[i].key);
        mk_test_unguard(key, n);
    }
    assert_false(mk__ws_key_is_valid(MK_STR("dGhlIHNhbXBsZSBub25j\0Q==")));
    assert_false(mk__ws_key_is_valid(MK_STR_NONE));
}

TEST(knows_the_version)
{
    assert_true(mk__ws_version_is_valid(MK_STR("13")));
    assert_false(mk__ws_version_is_valid(MK_STR("8")));
    assert_false(mk__ws_version_is_valid(MK_STR("13, 8")));
    assert_false(mk__ws_version_is_valid(MK_STR("013")));
    assert_false(mk__ws_version_is_valid(MK_STR_NONE));
}

TEST(chooses_subprotocols)
{
    static const struct {
        const char *offered, *supported, *chosen;
    } rows[] = {
        {"chat", "chat", "chat"},
        {"superchat, chat", "chat,superchat", "superchat"}, /* the client's order */
        {"a,  b\t,c", "x, c,b", "b"},
        {"a,b", "c", ""},
        {"Chat", "chat", ""},
        {"cha, chatt", "chat", ""},
        {",, ,chat,", "chat", "chat"},
        {"\"chat\"", "chat", ""},
        {"", "chat", ""},
        {"chat", "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].offered);
        char *offered = mk_test_guarded(rows[i].offered, n);
        struct mk_str chosen = mk__ws_choose_protocol(mk_str(offered, n), mk_str_c(rows[i].supported));
        assert_str_equal(chosen, rows[i].chosen);
        assert_true(!chosen.len || (chosen.p >= offered && chosen.p + chosen.len <= offered + n));
        mk_test_unguard(offered, n);
    }
}

static const struct origin_row {
    const char *origin, *authority;
    bool tls;
    const char *allowed;
    bool result;
} origins[] = {
    {"", "example.com", false, "", true},
    {"http://example.com", "example.com", false, "", true},
    {"https://example.com", "example.com", true, "", true},
    {"http://EXAMPLE.com", "example.COM", false, "", true},
    {"HTTP://example.com", "example.com", false, "", true},
    {"http://example.com:80", "example.com", false, "", true},
    {"http://example.com", "example.com:80", false, "", true},
    {"https://example.com", "example.com:443", true, "", true},
    {"http://example.com:8080", "example.com:8080", false, "", true},
    {"http://example.com:", "example.com:", false, "", true},
    {"http://127.0.0.1:2001", "127.0.0.1:2001", false, "", true},
    {"http://[::1]:2001", "[::1]:2001", false, "", true},
    {"http://[2001:DB8::1]", "[2001:db8::1]", false, "", true},

    {"https://example.com", "example.com", false, "", false},
    {"http://example.com", "example.com", true, "", false},
    {"http://example.com", "example.com:8080", false, "", false},
    {"http://example.com:8080", "example.com", false, "", false},
    {"https://example.com:80", "example.com:80", false, "", false},
    {"http://example.com", "example.com:443", true, "", false},
    {"http://example.com.evil", "example.com", false, "", false},
    {"http://evil.example.com", "example.com", false, "", false},
    {"http://evilexample.com", "example.com", false, "", false},
    {"http://example.com", "", false, "", false},
    {"http://[::1]", "[::2]", false, "", false},
    {"null", "null", false, "", false},
    {"null", "example.com", false, "", false},
    {"ftp://example.com", "example.com", false, "", false},

    /* malformed: also not equal to a malformed authority */
    {"example.com", "example.com", false, "example.com", false},
    {"http://", "", false, "http://", false},
    {"://example.com", "example.com", false, "", false},
    {"http:example.com", "example.com", false, "", false},
    {"http:/", "example.com", false, "", false},
    {"http://example.com/", "example.com", false, "http://example.com", false},
    {"http://user@example.com", "user@example.com", false, "", false},
    {"http://example.com?x", "example.com?x", false, "", false},
    {"http://example.com:80:80", "example.com", false, "", false},
    {"http://example.com:65536", "example.com:65536", false, "", false},
    {"http://example.com:x", "example.com:x", false, "", false},
    {"http://example.com:-1", "example.com:-1", false, "", false},
    {"http://::1", "::1", false, "", false},
    {"http://[::1", "[::1", false, "", false},
    {"http://[]", "[]", false, "", false},
    {"http://[::1]x", "[::1]x", false, "", false},
    {"http://[a/b]", "[a/b]", false, "", false},
    {"http://a b", "a b", false, "", false},
    {"http://a\x01", "a\x01", false, "", false},
    {"http://a\xc3\xbc", "a\xc3\xbc", false, "", false},
    {"http://a http://b", "b", false, "", false},
    {"http://a, http://b", "b", false, "http://b", false},

    /* the list */
    {"http://other", "example.com", false, "*", true},
    {"null", "example.com", false, "*", true},
    {"malformed", "example.com", false, "http://a, *", true},
    {"null", "example.com", false, "http://a, null", true},
    {"Null", "example.com", false, "null", false},
    {"https://app.example.com", "example.com", false, "https://app.example.com", true},
    {"https://APP.example.com:443", "example.com", false, "http://a,https://app.example.com", true},
    {"https://app.example.com", "example.com", false, "https://app.example.com:443", true},
    {"https://app.example.com:444", "example.com", false, "https://app.example.com", false},
    {"http://app.example.com", "example.com", false, "https://app.example.com", false},
    {"https://app.example.com", "example.com", false, "app.example.com, https://app.example.co", false},
    {"http://example.com", "example.com", false, "https://app.example.com", true}, /* the same origin */
    {"chrome-extension://abcd", "example.com", false, "chrome-extension://abcd", true},
    {"chrome-extension://abcd", "example.com", false, "moz-extension://abcd", false},
    {"http://b", "example.com", false, ", ,http://b,", true},
};

TEST(checks_origins)
{
    for (const struct origin_row *o = origins; o < origins + COUNT(origins); o++) {
        size_t n = strlen(o->origin), m = strlen(o->authority);
        char *origin = mk_test_guarded(o->origin, n), *authority = mk_test_guarded(o->authority, m);
        if (mk__ws_origin_allowed(mk_str(origin, n), mk_str(authority, m), o->tls, mk_str_c(o->allowed)) != o->result)
            fail_msg("row %td: %s at %s", o - origins, o->origin, o->authority);
        mk_test_unguard(origin, n);
        mk_test_unguard(authority, m);
    }
    assert_true(mk__ws_origin_allowed(MK_STR_NONE, MK_STR_NONE, true, MK_STR_NONE));
    assert_false(mk__ws_origin_allowed(MK_STR("http://a"), MK_STR_NONE, false, MK_STR_NONE));
}

// SPDX-License-Identifier: Apache-2.0
/* The ID of a request, its user, and its start time. */
#include "http/h1_fixture.h"

#include <stdio.h>

static char id[256];

static void ask_id(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    struct mk_str one = mk_request_id(req), again = mk_request_id(req);
    assert_ptr_equal(one.p, again.p);
    snprintf(id, sizeof(id), "%.*s", MK_STR_ARG(one));
    mk_response_end(req);
}

#define WITH_ID(id) "GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: " id "\r\n\r\n"

static bool is_random(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

TEST(ids)
{
    static const struct {
        const char *request, *id;
    } cases[] = {
        {WITH_ID("abc-123_x.y:z/+=@"), "abc-123_x.y:z/+=@"},
        {WITH_ID("a b"), NULL},
        {WITH_ID("a\"b"), NULL},
        {WITH_ID("a\tb"), NULL},
        {WITH_ID(""), NULL},
        {WITH_ID("\xc3\xa4"), NULL},
        {GET, NULL},
    };
    char before[256] = "";
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_fixture(ask_id);
        mk_test_connect(&w, mk_str_c(cases[i].request));
        mk_test_settle(&w);
        if (cases[i].id)
            assert_string_equal(id, cases[i].id);
        else
            assert_true(is_random(id) && strcmp(id, before) != 0);
        memcpy(before, id, sizeof(id));
        close_fixture();
    }
}

TEST(a_long_id)
{
    char request[512];
    for (int n = 128; n <= 129; n++) {
        snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: %0*d\r\n\r\n", n, 7);
        open_fixture(ask_id);
        mk_test_connect(&w, mk_str_c(request));
        mk_test_settle(&w);
        assert_int_equal(strlen(id), n == 128 ? 128 : 32);
        close_fixture();
    }
}

static void set_user(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char name[] = "ada";
    (void)fixture;
    assert_null(mk_request_user(req).p);
    assert_int_equal(mk_request_set_user(req, mk_str(name, 3)), 0);
    memset(name, 'x', 3);
    assert_str_equal(mk_request_user(req), "ada");
    mk_response_end(req);
}

TEST(the_user_is_copied)
{
    open_fixture(set_user);
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    close_fixture();
}

static void set_claims(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char json[] = "{}";
    (void)fixture;
    assert_null(mk_request_claims(req).p);
    assert_int_equal(mk_request_set_claims(req, mk_str(json, 2)), 0);
    memset(json, 'x', 2);
    assert_str_equal(mk_request_claims(req), "{}");
    mk_response_end(req);
}

TEST(claims_are_copied)
{
    open_fixture(set_claims);
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    close_fixture();
}

static void decide_access(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_request_access(req), 0);
    mk_request_allow(req);
    assert_int_equal(mk_request_access(req), 1);
    mk_request_defer_denial(req);
    assert_int_equal(mk_request_deny(req, 451), MK_DECLINED);
    assert_int_equal(mk_request_access(req), 451);
    mk_response_end(req);
}

static void deny_access(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_request_deny(req, 451), 0);
}

TEST(access)
{
    for (int denied = 0; denied < 2; denied++) {
        open_fixture(denied ? deny_access : decide_access);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        assert_true(mk_str_starts(mk_test_received(c), denied ? MK_STR("HTTP/1.1 451 ") : MK_STR("HTTP/1.1 200 ")));
        close_fixture();
    }
}

static void remember_all(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
}

/* The head comes in pieces, half a second apart; the answer comes a second later. */
TEST(times)
{
    for (int wanted = 0; wanted < 2; wanted++) {
        open_fixture(remember_all);
        w.settings.times = wanted;
        uint64_t start = w.now_ms * 1000;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HT"));
        mk_test_pass(&w, 500);
        mk_test_send(c, MK_STR("TP/1.1\r\nHost: h\r\n\r\n"));
        mk_test_pass(&w, 1000);
        assert_int_equal(mk_request_began_us(held_req), wanted ? start : 0);
        assert_int_equal(mk_response_began_us(held_req), 0);
        assert_int_equal(mk_request_bytes_received(held_req), 27);
        mk_response_write(held_req, MK_STR("x"));
        mk_test_settle(&w);
        assert_int_equal(mk_response_began_us(held_req), wanted ? start + 1500000 : 0);
        assert_true(mk_response_head_bytes(held_req) > 80);
        mk_response_end(held_req);
        mk_test_settle(&w);
        mk_test_send(c, MK_STR(GET));
        mk_test_settle(&w);
        assert_int_equal(mk_request_began_us(held_req), wanted ? start + 1500000 : 0); /* each has its own */
        mk_response_end(held_req);
        mk_test_settle(&w);
        close_fixture();
    }
}

// SPDX-License-Identifier: Apache-2.0
/* FastCGI and SCGI requests: what is written for variables of the test, and what does not fit. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "plugins/fastcgi/fastcgi.h"

/* What mk_cgi_write_variables() writes, and returns without an error. */
static const struct variable {
    struct mk_str name, value;
} * variables;
static size_t n_variables;
static int variables_err;
static struct mk_cgi_params seen;

int mk_cgi_write_variables(struct mk_request *req, const struct mk_cgi_params *params, mk_cgi_variable_fn fn, void *ctx)
{
    int err = variables_err;
    (void)req;
    seen = *params;
    for (size_t i = 0; i < n_variables && err >= 0; i++)
        err = fn(variables[i].name, variables[i].value, ctx);
    return err;
}

static const struct variable usual[] = {
    {MK_STR_INIT("CONTENT_LENGTH"), MK_STR_INIT("7")},
    {MK_STR_INIT("SCGI"), MK_STR_INIT("2")},
    {MK_STR_INIT("A"), MK_STR_INIT("bc")},
    {MK_STR_INIT("E"), MK_STR_INIT("")},
};

static struct fastcgi_conf conf;
static bool keeps_conn;
static char protocol_state[1024];
static struct mk_buf out;
static const struct fastcgi_script script = {.name = MK_STR_INIT("/a.php"),
                                             .info = MK_STR_INIT("/x"),
                                             .filename = MK_STR_INIT("/srv/a.php"),
                                             .root = MK_STR_INIT("/srv")};

static int set_up(void **test_state)
{
    (void)test_state;
    variables = usual;
    n_variables = COUNT(usual);
    variables_err = 0;
    conf = (struct fastcgi_conf){0};
    keeps_conn = false;
    mk_buf_init(&out, 1 << 20);
    return 0;
}

static int tear_down(void **test_state)
{
    (void)test_state;
    mk_buf_release(&out);
    return 0;
}

static int write_request(const struct mk_gateway_protocol *protocol, enum mk_gateway_body_kind kind, uint64_t bytes)
{
    const struct mk_gateway_call call = {.protocol = protocol,
                                         .conf = &conf.gateway,
                                         .state = protocol_state,
                                         .arg = (void *)(uintptr_t)&script,
                                         .keeps_conn = keeps_conn};
    const struct mk_gateway_body body = {.kind = kind, .bytes = bytes};
    assert_true(protocol->state_bytes <= sizeof(protocol_state));
    memset(protocol_state, 1, sizeof(protocol_state));
    out.len = 0;
    int err = protocol->write_head(&call, &body, &out);
    for (size_t i = 0; i < protocol->state_bytes; i++)
        assert_int_equal(protocol_state[i], 0); /* a further connection begins anew */
    return err;
}

TEST(parameters, set_up, tear_down)
{
    conf.pass_authorization = true;
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_LENGTH, 5), 0);
    assert_str_equal(seen.script_name, "/a.php");
    assert_str_equal(seen.path_info, "/x");
    assert_str_equal(seen.script_filename, "/srv/a.php");
    assert_str_equal(seen.document_root, "/srv");
    assert_true(seen.has_length && seen.pass_authorization);
    assert_int_equal(seen.length, 5);
    assert_ptr_equal(seen.extras, &conf.params);
    assert_int_equal(write_request(&scgi_protocol, MK_GATEWAY_BODY_NONE, 5), 0);
    assert_int_equal(seen.length, 0);
}

/* ── FastCGI ── */

#define PAIRS "\x0e\1CONTENT_LENGTH7\4\1SCGI2\1\2Abc\1\0E"
#define BEGIN(flags) "\1\1\0\1\0\10\0\0\0\1" flags "\0\0\0\0\0"
#define PARAMS "\1\4\0\1\0\x20\0\0" PAIRS "\1\4\0\1\0\0\0\0"
#define STDIN_END "\1\5\0\1\0\0\0\0"

TEST(fastcgi, set_up, tear_down)
{
    static const char closed[] = BEGIN("\0") PARAMS STDIN_END, kept[] = BEGIN("\1") PARAMS;
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_NONE, 0), 0);
    assert_int_equal(out.len, sizeof(closed) - 1);
    assert_memory_equal(out.data, closed, out.len);
    keeps_conn = true;
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_LENGTH, 3), 0);
    assert_int_equal(out.len, sizeof(kept) - 1);
    assert_memory_equal(out.data, kept, out.len);
}

TEST(body_of_fastcgi)
{
    char frame[MK_GATEWAY_FRAME_BYTES];
    assert_int_equal(request_stdin.begin(frame, 0x1234), 8);
    assert_memory_equal(frame, "\1\5\0\1\x12\x34\0\0", 8);
    assert_int_equal(request_stdin.body_end.len, 8);
    assert_memory_equal(request_stdin.body_end.p, STDIN_END, 8);
}

TEST(too_many_variables_for_fastcgi, set_up, tear_down)
{
    static char value[65536];
    struct variable one = {MK_STR("A"), mk_str(value, 65535 - 6)};
    variables = &one;
    n_variables = 1;
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_NONE, 0), 0);
    one.value.len++;
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_NONE, 0), -ENOBUFS);
}

/* ── SCGI ── */

/* CONTENT_LENGTH and SCGI come once, before all others. */
TEST(scgi, set_up, tear_down)
{
    static const char bytes[] = "36:CONTENT_LENGTH\0"
                                "12345\0"
                                "SCGI\0"
                                "1\0"
                                "A\0bc\0"
                                "E\0\0,";
    assert_int_equal(write_request(&scgi_protocol, MK_GATEWAY_BODY_LENGTH, 12345), 0);
    assert_int_equal(out.len, sizeof(bytes) - 1);
    assert_memory_equal(out.data, bytes, out.len);
}

TEST(scgi_of_each_length, set_up, tear_down)
{
    static char value[20000];
    struct variable one = {MK_STR("A"), mk_str(value, 0)};
    variables = &one;
    n_variables = 1;
    memset(value, 'a', sizeof(value));
    for (; one.value.len < sizeof(value); one.value.len += 7) {
        char *end;
        assert_int_equal(write_request(&scgi_protocol, MK_GATEWAY_BODY_NONE, 0), 0);
        unsigned long len = strtoul(out.data, &end, 10);
        assert_int_equal(*end, ':');
        assert_int_equal(end + 1 + len + 1 - out.data, out.len);
        assert_memory_equal(end + 1,
                            "CONTENT_LENGTH\0"
                            "0",
                            17);
        assert_int_equal(out.data[out.len - 1], ',');
    }
}

/* A NUL would end the value, and what follows would be another variable. */
TEST(nul_in_scgi, set_up, tear_down)
{
    const struct variable one = {MK_STR("A"), mk_str("b\0C\0d", 5)};
    variables = &one;
    n_variables = 1;
    assert_int_equal(write_request(&scgi_protocol, MK_GATEWAY_BODY_NONE, 0), -EINVAL);
    assert_int_equal(write_request(&fastcgi_protocol, MK_GATEWAY_BODY_NONE, 0), 0);
}

/* ── no room ── */

TEST(failures, set_up, tear_down)
{
    static const struct mk_gateway_protocol *const protocols[] = {&fastcgi_protocol, &scgi_protocol};
    for (size_t i = 0; i < COUNT(protocols); i++) {
        char storage[128];
        size_t whole;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        assert_int_equal(write_request(protocols[i], MK_GATEWAY_BODY_NONE, 0), 0);
        whole = out.len;
        for (size_t size = 0; size < whole; size++) {
            mk_buf_init_fixed(&out, storage, size);
            assert_int_equal(write_request(protocols[i], MK_GATEWAY_BODY_NONE, 0), -ENOBUFS);
        }
        mk_buf_init(&out, 1 << 20);
        variables_err = -ENOMEM;
        assert_int_equal(write_request(protocols[i], MK_GATEWAY_BODY_NONE, 0), -ENOBUFS);
        variables_err = -EINVAL;
        assert_int_equal(write_request(protocols[i], MK_GATEWAY_BODY_NONE, 0), -EINVAL);
        variables_err = 0;
        mk_buf_release(&out);
        mk_buf_init(&out, 1 << 20);
    }
}

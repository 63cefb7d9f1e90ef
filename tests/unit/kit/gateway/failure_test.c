// SPDX-License-Identifier: Apache-2.0
/* What failures are called, and how Proxy-Status is written. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/dial.h>

#include "gateway/failure.h"

TEST(finds)
{
    static const struct {
        bool is_dial;
        int err, status;
        const char *type;
    } rows[] = {
        {true, -ETIMEDOUT, 504, "connection_timeout"},
        {true, -ECONNREFUSED, 502, "connection_refused"},
        {true, -ENXIO, 502, "dns_error"},
        {true, -EMFILE, 503, "connection_limit_reached"},
        {true, -EPIPE, 502, "destination_unavailable"},
        {false, -ETIMEDOUT, 504, "http_response_timeout"},
        {false, -EPIPE, 502, "http_response_incomplete"},
        {false, -EINVAL, 502, "http_protocol_error"},
        {false, -ENOMEM, 503, "proxy_internal_error"},
        {false, -ENXIO, 502, "connection_terminated"},
        {false, -ECONNREFUSED, 502, "connection_terminated"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct mk__gw_failure *f = mk__gw_failure_find(rows[i].is_dial, rows[i].err);
        assert_int_equal(f->status, rows[i].status);
        assert_string_equal(f->type, rows[i].type);
    }
}

/* The same errors of a dial for requests and checks. */
TEST(own_failures)
{
    for (int err = 1; err < 140; err++)
        assert_int_equal(mk__gw_failure_find(true, -err)->is_own, mk_dial_error_is_own(-err));
    assert_true(mk__gw_failure_find(true, -EADDRNOTAVAIL)->is_own);
    assert_true(mk__gw_failure_find(false, -EMFILE)->is_own);
    assert_true(mk__gw_failure_find(false, -EDQUOT)->is_own);
    assert_false(mk__gw_failure_find(false, -EBUSY)->is_own); /* of the backend, like the next one */
    assert_false(mk__gw_failure_find(false, -ENOBUFS)->is_own);
}

TEST(writes)
{
    char storage[100];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk__gw_failure_write(&out, "dns_error", MK_STR_NONE);
    assert_str_equal(mk_buf_str(&out), "monkey; error=dns_error");
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk__gw_failure_write(&out, "tls_alert_received", MK_STR("a \"b\" \\ c"));
    assert_str_equal(mk_buf_str(&out), "monkey; error=tls_alert_received; details=\"a \\\"b\\\" \\\\ c\"");
}

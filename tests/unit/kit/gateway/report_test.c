// SPDX-License-Identifier: Apache-2.0
/* What an exchange leaves for operators: failures as Proxy-Status, and the list of the shell. */
#include "testing.h"

#include "command_call.h"
#include "counters_memory.h"
#include "gateway/exchange.h"

#include <monkey/base/dial.h>
#include <monkey/kit/gateway.h>

#include <errno.h>

/* ── failures ── */

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

/* ── backends in `monkey shell` ── */

static const struct mk_counter_info requests = {"proxy", "backend_requests", "requests", MK_COUNTER_SUM};
static const struct mk_counter_info responses = {"proxy", "backend_responses", "responses", MK_COUNTER_SUM};
static const struct mk_counter_info times = {"proxy", "backend_head_duration", "times", MK_COUNTER_HISTOGRAM};
static const struct mk_counter_info foreign = {"other", "backend_requests", "of another plugin", MK_COUNTER_SUM};
static const struct mk_plugin plugin = {.name = "proxy"};
static struct mk_test_call call;

static const struct mk_counter *open_counter(const struct mk_counter_info *info, const char *backend,
                                             const char *status)
{
    const struct mk_counter_label labels[] = {{"backend", mk_str_c(backend)}, {"status", mk_str_c(status)}};
    return mk_counter_open(info, labels, status[0] ? 2 : 1);
}

static const char *run(void)
{
    mk_test_call_init(&call, NULL, "");
    assert_int_equal(mk_gateway_list_backends(&call.base, &plugin), 0);
    return mk_test_call_take(&call);
}

TEST(rows_of_backends, mk_test_counters_open, mk_test_counters_close)
{
    assert_string_equal(run(), "");
    mk_counter_add(open_counter(&requests, "http://a", ""), NULL, 7);
    mk_counter_add(open_counter(&requests, "http://b", ""), NULL, 1);
    mk_counter_add(open_counter(&responses, "http://a", "2xx"), NULL, 4);
    mk_counter_add(open_counter(&responses, "http://a", "5xx"), NULL, 2);
    mk_counter_observe(open_counter(&times, "http://a", ""), NULL, 1000);
    mk_counter_add(open_counter(&foreign, "http://c", ""), NULL, 1);
    assert_string_equal(
        run(), "{backend:http://a,server:,requests:7,4xx:0,5xx:2,retries:0,failures:0,timeouts:0,busy:0,idle:0,"
               "sent_bytes:0,received_bytes:0,head_p50_us:1024,head_p99_us:1024}\n"
               "{backend:http://b,server:,requests:1,4xx:0,5xx:0,retries:0,failures:0,timeouts:0,busy:0,idle:0,"
               "sent_bytes:0,received_bytes:0,head_p50_us:0,head_p99_us:0}\n");
}

/* Those of a group have rows of their own; retries are the sum of their reasons. */
TEST(servers_of_groups, mk_test_counters_open, mk_test_counters_close)
{
    static const struct mk_counter_info retries = {"proxy", "backend_retries", "retries", MK_COUNTER_SUM};
    static const char *const reasons[] = {"not_reached", "status"};
    for (unsigned i = 0; i < 2; i++) {
        const struct mk_counter_label labels[] = {{"backend", MK_STR("http://app")},
                                                  {"server", MK_STR("10.0.0.1")},
                                                  {"reason", mk_str_c(reasons[i])}};
        mk_counter_add(mk_counter_open(&retries, labels, MK_COUNT_OF(labels)), NULL, 2 + i);
    }
    mk_counter_add(open_counter(&requests, "http://app", ""), NULL, 1);
    const char *text = run();
    assert_int_equal(call.base.at, 0);
    assert_non_null(strstr(text, "{backend:http://app,server:10.0.0.1,requests:0,4xx:0,5xx:0,retries:5,"));
    assert_non_null(strstr(text, "{backend:http://app,server:,requests:1,4xx:0,5xx:0,retries:0,"));
}

TEST(too_many_backends, mk_test_counters_open, mk_test_counters_close)
{
    for (unsigned i = 0; i < 1100; i++) {
        char name[32];
        snprintf(name, sizeof(name), "http://b%u", i);
        mk_counter_add(open_counter(&requests, name, ""), NULL, 1);
    }
    mk_test_call_init(&call, NULL, "");
    assert_int_equal(mk_gateway_list_backends(&call.base, &plugin), 0);
    assert_int_equal(call.rows, 1024);
    assert_string_equal(call.warning, "there are more than 1024 backends");
}

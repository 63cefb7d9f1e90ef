// SPDX-License-Identifier: Apache-2.0
/* The command `traffic`: sums of the server's counters, for all hosts and for each. */
#include "testing.h"

#include "command_call.h"
#include "counters_memory.h"
#include "plugins/status/report.h"

#include <monkey/counters.h>

static const struct mk_counter_info requests = {NULL, "requests", "requests", MK_COUNTER_SUM};
static const struct mk_counter_info sent = {NULL, "sent_body_bytes", "bytes", MK_COUNTER_SUM};
static const struct mk_counter_info times = {NULL, "request_duration", "times", MK_COUNTER_HISTOGRAM};
static const struct mk_counter_info foreign = {"other", "requests", "requests of a plugin", MK_COUNTER_SUM};
static struct mk_test_call call;

static void count(const struct mk_counter_info *info, const char *host, const char *status, int64_t n)
{
    const struct mk_counter_label labels[] = {{"host", mk_str_c(host)}, {"status", mk_str_c(status)}};
    mk_counter_add(mk_counter_open(info, labels, MK_COUNT_OF(labels)), NULL, n);
}

static int open_counters(void **state)
{
    int err = mk_test_counters_open(state);
    const struct mk_counter_label host = {"host", MK_STR("a.test")};
    count(&requests, "a.test", "2xx", 3);
    count(&requests, "a.test", "5xx", 1);
    count(&requests, "b.test", "4xx", 9);
    count(&foreign, "a.test", "2xx", 100);
    mk_counter_add(mk_counter_open(&sent, &host, 1), NULL, 500);
    mk_counter_observe(mk_counter_open(&times, &host, 1), NULL, 1000);
    return err;
}

static const char *run(const char *args)
{
    mk_test_call_init(&call, NULL, args);
    return status_commands[0].run(&call.base) == 0 ? mk_test_call_take(&call) : NULL;
}

TEST(all_hosts, open_counters, mk_test_counters_close)
{
    const char *text = run("");
    assert_int_equal(call.base.at, 0);
    assert_string_equal(call.warning, "");
    assert_memory_equal(text, "{host:(all),requests:13,none:0,1xx:0,2xx:3,3xx:0,4xx:9,5xx:1,aborted:0,", 71);
    const char *b = strstr(text, "{host:b.test,requests:9,"), *a = strstr(text, "{host:a.test,requests:4,");
    assert_true(b && a && b < a); /* by requests */
}

TEST(one_host, open_counters, mk_test_counters_close)
{
    const char *text = run("A.test");
    assert_memory_equal(text, "{host:a.test,requests:4,none:0,1xx:0,2xx:3,3xx:0,4xx:0,5xx:1,aborted:0,", 71);
    assert_non_null(strstr(text, "received_bytes:0,sent_bytes:500,p50_us:1024,p99_us:1024}\n"));
    assert_null(run("c.test"));
    assert_string_equal(call.error, "no requests of a host c.test were counted; traffic lists those that have some");
}

TEST(hosts_to_complete, open_counters, mk_test_counters_close)
{
    mk_test_call_init(&call, NULL, "");
    status_commands[0].complete(&call.base);
    assert_string_equal(mk_test_call_take(&call), "b.test a.test ");
}

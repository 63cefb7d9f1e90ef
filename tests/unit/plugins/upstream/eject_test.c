// SPDX-License-Identifier: Apache-2.0
/* EjectOn: its values, and what is a failure. */
#include "plugins/upstream/conf.h"

#include "plugins/upstream/values_fixture.h"

TEST(values)
{
    struct eject_on on;
    assert_int_equal(parse_words(eject_parse, "Refused Timeout Reset 502-504", &on, NULL), 0);
    assert_true(on.refused && on.timeout && on.reset);
    assert_true(mk_status_set_has(&on.statuses, 503));
    assert_int_equal(parse_words(eject_parse, "timeout", &on, NULL), 0);
    assert_true(!on.refused && on.timeout && !on.reset && !mk_status_set_has(&on.statuses, 503));
    assert_int_equal(parse_words(eject_parse, "Refused 5xx", &on, NULL), -EINVAL);
}

TEST(failures)
{
    static const struct {
        const char *value;
        uint32_t slower_ms;
        struct mk_upstream_outcome outcome;
        bool is_failure;
    } rows[] = {
        {"Refused", 0, {.err = -ECONNREFUSED}, true},
        {"Timeout Reset", 0, {.err = -ECONNREFUSED}, false},
        {"Timeout", 0, {.err = -ETIMEDOUT}, true},
        {"Timeout", 0, {.err = -ETIMEDOUT, .is_connected = true}, true},
        {"Refused Reset", 0, {.err = -ETIMEDOUT, .is_connected = true}, false},
        {"Reset", 0, {.err = -ECONNRESET, .is_connected = true}, true},
        {"Reset", 0, {.err = -EINVAL, .is_connected = true}, true},
        {"Refused", 0, {.err = -EPIPE, .is_connected = true}, false},
        {"500", 0, {.status = 500}, true},
        {"502", 0, {.status = 500}, false},
        {"502", 100, {.status = 200, .head_ms = 101}, true},
        {"502", 100, {.status = 200, .head_ms = 100}, false},
        {"502", 0, {.status = 200, .head_ms = 100000}, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct eject_on on;
        assert_int_equal(parse_words(eject_parse, rows[i].value, &on, NULL), 0);
        assert_int_equal(eject_is_failure(&on, rows[i].slower_ms, &rows[i].outcome), rows[i].is_failure);
    }
}

TEST(reasons)
{
    static const struct {
        struct mk_upstream_outcome outcome;
        const char *reason;
    } rows[] = {
        {{.status = 503, .head_ms = 7}, "status 503 after 7 ms"},
        {{.err = -ECONNREFUSED}, "Connection refused"},
        {{.err = -ETIMEDOUT, .is_connected = true}, "no response in time"},
        {{.err = -ELOOP, .is_connected = true}, "too many interim responses"},
        {{.err = -ECONNRESET, .is_connected = true}, "Connection reset by peer"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[256];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        eject_write_reason(&rows[i].outcome, &out);
        assert_string_equal(mk_buf_cstr(&out), rows[i].reason);
    }
}

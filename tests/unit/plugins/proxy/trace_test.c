// SPDX-License-Identifier: Apache-2.0
/* TraceSample, and which values of traceparent are valid. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include <monkey/base/buf.h>

#include "plugins/proxy/proxy.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

TEST(shares)
{
    static const struct {
        const char *text;
        int share; /* -2: it is refused */
    } rows[] = {
        {"Off", TRACE_OFF},  {"off", TRACE_OFF},   {"0", 0},     {"0%", 0},      {"100", TRACE_ALL},
        {"100%", TRACE_ALL}, {"100.0", TRACE_ALL}, {"1", 10000}, {"0.5%", 5000}, {"0.0001", 1},
        {"12.34", 123400},   {"1.", 10000},        {"", -2},     {"%", -2},      {"101", -2},
        {"100.0001", -2},    {"0.00001", -2},      {"-1", -2},   {"+1", -2},     {".5", -2},
        {"1.x", -2},         {"1 %", -2},          {"1e1", -2},  {"On", -2},     {"1.-1", -2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        MK_BUF_ON_STACK(error, 256);
        struct mk_conf_value value = {.text = mk_str_c(rows[i].text), .n = 1};
        int32_t share = -3;
        int err = trace_parse_share(&value, &share, NULL, &error);
        if (err != (rows[i].share == -2 ? -EINVAL : 0) || (err == 0 && share != rows[i].share))
            fail_msg("%s: %d, %d", rows[i].text, err, share);
    }
}

TEST(validity)
{
    static const struct {
        const char *value;
        bool is_valid;
    } rows[] = {
        {"00-" TRACE "-" SPAN "-01", true},
        {"00-" TRACE "-" SPAN "-00", true},
        {"00-" TRACE "-" SPAN "-ff", true},
        {"00-" TRACE "-" SPAN "-01-x", false}, /* more only in later versions */
        {"01-" TRACE "-" SPAN "-01", true},
        {"01-" TRACE "-" SPAN "-01-what-will-be", true},
        {"01-" TRACE "-" SPAN "-01x", false},
        {"ff-" TRACE "-" SPAN "-01", false},
        {"FF-" TRACE "-" SPAN "-01", false},
        {"0-" TRACE "-" SPAN "-01", false},
        {"0A-" TRACE "-" SPAN "-01", false},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false},
        {"00-" TRACE "-B7AD6B7169203331-01", false},
        {"00-00000000000000000000000000000000-" SPAN "-01", false},
        {"00-" TRACE "-0000000000000000-01", false},
        {"00-" TRACE "-" SPAN "-0", false},
        {"00-" TRACE "-" SPAN "-0G", false},
        {"00-" TRACE "-" SPAN "-0 ", false},
        {"00_" TRACE "-" SPAN "-01", false},
        {"00-" TRACE "_" SPAN "-01", false},
        {"00-" TRACE "-" SPAN "_01", false},
        {"00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01", false},
        {"00-1-2-00", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (trace_is_valid(mk_str_c(rows[i].value)) != rows[i].is_valid)
            fail_msg("%s", rows[i].value);
}

/* The end of the ID decides, so that all servers with one share decide alike. */
TEST(sampled)
{
    static const struct {
        const char *id;
        int32_t share;
        bool is_sampled;
    } rows[] = {
        {"00000000000000000000000000000000", 0, false},
        {"00000000000000000000000000000000", 1, true},
        {"00000000000000000000000000000001", 1, true},
        {"000000000000000000ffffffffffffff", TRACE_ALL, true},
        {"000000000000000000ffffffffffffff", TRACE_ALL - 1, false},
        {"0000000000000000007fffffffff0000", TRACE_ALL / 2, true},
        {"00000000000000000080000000000000", TRACE_ALL / 2, false},
        {"ffffffffffffffffff00000000000000", 1, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (trace_is_sampled(mk_str_c(rows[i].id), rows[i].share) != rows[i].is_sampled)
            fail_msg("%s at %d", rows[i].id, (int)rows[i].share);
}

TEST(names)
{
    assert_true(trace_replaces(MK_STR("TraceParent")));
    assert_true(trace_replaces(MK_STR("tracestate")));
    assert_false(trace_replaces(MK_STR("trace")));
}

TEST_FILE()

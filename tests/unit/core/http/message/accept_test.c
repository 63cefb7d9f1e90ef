// SPDX-License-Identifier: Apache-2.0
/*
 * The choice of a format by Accept: weights, ranges and their precedence, versions, and what is malformed.
 */
#include "testing.h"

#include <monkey/base/accept.h>

static const struct mk_accept_offer metrics[] = {
    {.type = MK_STR("text/plain"), .version = MK_STR("0.0.4")},
    {.type = MK_STR("application/openmetrics-text"), .version = MK_STR("1.0.0"), .only_by_name = true},
};
static const struct mk_accept_offer status[] = {
    {.type = MK_STR("application/json")},
    {.type = MK_STR("text/html"), .only_by_name = true},
};

static const struct mk_accept_offer listing[] = {{.type = MK_STR("text/html")}, {.type = MK_STR("application/json")}};

struct row {
    const char *value;
    unsigned chosen;
};

static void check_rows(const struct row *rows, size_t n, const struct mk_accept_offer *offers)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = rows[i].value ? strlen(rows[i].value) : 0;
        char *copy = len ? mk_test_guarded(rows[i].value, len) : NULL;
        unsigned chosen = mk_accept_choose(mk_str(len ? copy : rows[i].value, len), offers, 2, 0);
        if (chosen != rows[i].chosen)
            fail_msg("\"%s\": %u, not %u", rows[i].value, chosen, rows[i].chosen);
        if (copy)
            mk_test_unguard(copy, len);
    }
}

TEST(metrics)
{
    static const struct row rows[] = {
        {NULL, 0},
        {"", 0},
        {"*/*", 0},
        {"text/plain", 0},
        {"text/plain;version=0.0.4", 0},
        {"application/openmetrics-text", 1},
        {"APPLICATION/OpenMetrics-Text; Version=1.0.0", 1},
        {"application/openmetrics-text; version=\"1.0.0\"; charset=utf-8", 1},
        /* of Prometheus 2.42 and 3.0 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         1},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         1},
        {"application/openmetrics-text;version=0.0.1", 0}, /* another version, which is not sent */
        {"application/openmetrics-text;version=2.0.0,text/plain;q=0.1", 0},
        {"application/openmetrics-text;q=0.3,text/plain;q=0.4", 0},
        {"application/openmetrics-text;q=0.4,text/plain;q=0.4", 0},
        {"application/openmetrics-text;q=0.401,text/*;q=0.4", 1},
        {"application/openmetrics-text;q=0", 0},
        {"application/openmetrics-text;q=1.001", 0},
        {"application/openmetrics-text;q=x, text/plain;q=0.001", 0},
        {"application/*", 0},
        {"text/plain;q=0,application/openmetrics-text;q=0.001", 1},
        {";;;,=,q=1,text/", 0},
    };
    check_rows(rows, COUNT(rows), metrics);
}

TEST(status)
{
    static const struct row rows[] = {
        {"*/*", 0},
        {"text/html", 1},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", 1},
        {"application/json", 0},
        {"application/json, text/html;q=0.9", 0},
        {"text/html, application/json;q=0.9", 1},
        {"text/*", 0},
        {"image/png", 0},
    };
    check_rows(rows, COUNT(rows), status);
}

TEST(listing)
{
    static const struct row rows[] = {
        {NULL, 0},
        {"", 0},
        {"*/*", 0},
        {"application/json", 1},
        {"Application/JSON", 1},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 0},
        {"application/json, text/html", 0},
        {"application/json, text/html;q=0.9", 1},
        {"application/json;q=0.9, text/html", 0},
        {"application/*", 1},
        {"application/*, text/html;q=0.5", 1},
        {"application/*, application/json;q=0.1, text/*;q=0.2", 0},
        {"application/json;q=0", 0},
        {"application/json;q=0.001, text/html;q=0", 1},
        {"application/json; charset=utf-8; q=1.000, text/html;Q=0.999", 1},
        {"application/json;q=2", 0},
        {"application/json;q=1.001", 0},
        {"application/json;q=.5", 0},
        {"application/json;q=0.5555", 0},
        {"application/json;q=", 0},
        {"application/json-seq", 0},
        {"application/jso*", 0},
        {"*", 0},
        {"/*, */", 0},
        {"*/*, text/html;q=0", 1},
        {",,;q=1,application/json", 1},
        {"text/html;q=0.5;q=0.25, application/json;q=0.3", 1},
        {"application/json;q=0.1, application/json;q=0.9, text/html;q=0.5", 1}, /* of equal ranges the highest */
        {"*/*;q=0.1, */*;q=0, application/json;q=0", 0},
        {"application/*;q=0, application/json;q=0.2", 1},
        {"text/html;note=\"a;q=0, b\\\"\", application/json;q=0.9", 0}, /* what is quoted is no weight */
        {"application/json;note=\"a;q=0\", text/html;q=0.9", 1},
        {"application/json;note=\"", 1},
        {"application/json ; q=1 , text/html ; q=0.1", 1},
        {"application/json;q=\"0\", text/html;q=0.1", 0},
        {"application/json;q=0., text/html;q=0.", 0},
        {"application/json;q=1., text/html;q=0.999", 1},
        {"application/json;q=-1, text/html;q=0", 0},
        {"application/json;q=1.0000, text/html;q=0.1", 0},
        {"application/json;level=1, text/html;q=0.1", 1},
        {"*/json, application/*json, json", 0},
    };
    check_rows(rows, COUNT(rows), listing);
}

/* Offers that are not acceptable are never chosen; a list of none has its fallback. */
TEST(fallback)
{
    assert_int_equal(mk_accept_choose(MK_STR("*/*"), listing, 0, 7), 7);
    assert_int_equal(mk_accept_choose(MK_STR("image/png"), listing, 2, 7), 7);
    assert_int_equal(mk_accept_choose(MK_STR("text/*;q=0"), listing, 2, 7), 7);
    assert_int_equal(mk_accept_choose(MK_STR_NONE, listing, 2, 7), 7);
    assert_int_equal(mk_accept_choose(MK_STR("*/*"), listing, 2, 7), 0);
}

// SPDX-License-Identifier: Apache-2.0
/* Which headers become variables, and which of a script reach the client. */
#include "testing.h"

#include "kit/cgi/cgi.h"

TEST(of_requests)
{
    static const struct {
        const char *name;
        bool passes;
    } rows[] = {
        {"Accept", true},
        {"X-A1", true},
        {"Cookie", true},
        {"Forwarded", true},
        {"Proxy", false},
        {"pRoXy", false},
        {"Proxy-Authorization", false},
        {"Content-Length", false},
        {"Content-Type", false},
        {"Host", false},
        {"Expect", false},
        {"X_A", false},
        {"X.A", false},
        {"X A", false},
        {"", false},
        {"Transfer-Encoding", false},
        {"Connection", false},
        {"Upgrade", false},
        {"TE", false},
        {"Authorization", false},
        {"X-Named", false},
        {"x-NAMED", false},
        {"X-\xc3\xa4", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (mk__cgi_header_reaches_script(mk_str_c(rows[i].name), MK_STR("close, X-Named"), false) != rows[i].passes)
            fail_msg("%s", rows[i].name);
    assert_true(mk__cgi_header_reaches_script(MK_STR("Authorization"), MK_STR_NONE, true));
    assert_true(mk__cgi_header_reaches_script(MK_STR("X-Named"), MK_STR_NONE, true));
    assert_false(mk__cgi_header_reaches_script(MK_STR("Authorization"), MK_STR("authorization"), true));
}

TEST(of_responses)
{
    static const struct {
        const char *name;
        bool passes;
    } rows[] = {
        {"Content-Type", true},
        {"Location", true},
        {"Set-Cookie", true},
        {"X-Accelerate", true},
        {"Status", false},
        {"Server", false},
        {"Date", false},
        {"Content-Length", false},
        {"Connection", false},
        {"Upgrade", false},
        {"X-Sendfile", false},
        {"X-Accel-Redirect", false},
        {"x-accel-Buffering", false},
        {"Proxy-Authenticate", false},
        {"Trailer", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (mk__cgi_header_reaches_client(mk_str_c(rows[i].name)) != rows[i].passes)
            fail_msg("%s", rows[i].name);
}

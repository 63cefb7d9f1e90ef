// SPDX-License-Identifier: Apache-2.0
/* Which logins belong to a connection. */
#include "testing.h"

#include <monkey/kit/http_client.h>

TEST(credentials_and_challenges)
{
    static const struct {
        const char *value;
        bool binds;
    } cases[] = {
        {"NTLM", true},
        {"ntlm TlRMTVNTUAAB", true},
        {"Negotiate", true},
        {"negotiate YII=", true},
        {"Basic realm=\"a, b\", NTLM", true},
        {"", false},
        {"Basic realm=\"NTLM\"", false},
        {"Basic realm=\"a, NTLM, b\"", false},
        {"Bearer NTLM", false},
        {"NTLMv3 x", false},
        {"Digest qop=\"auth\", Basic", false},
    };
    for (size_t i = 0; i < MK_COUNT_OF(cases); i++)
        assert_int_equal(mk_http_login_binds_connection(mk_str_c(cases[i].value)), cases[i].binds);
}

TEST(responses)
{
    static const char head[] = "WWW-Authenticate: Basic\r\nwww-authenticate: NTLM\r\n";
    const struct mk_field fields[] = {{{0, 16}, {18, 5}, MK_HEADER_OTHER}, {{25, 16}, {43, 4}, MK_HEADER_OTHER}};
    struct mk_response_parser p = {.n_fields = 2, .status = 401};
    assert_true(mk_http_response_binds_connection(&p, fields, head));
    p.n_fields = 1;
    assert_false(mk_http_response_binds_connection(&p, fields, head));
    p.n_fields = 2;
    p.status = 200;
    assert_false(mk_http_response_binds_connection(&p, fields, head));
}

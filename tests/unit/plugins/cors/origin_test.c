// SPDX-License-Identifier: Apache-2.0
/* Origins: which are as browsers send them, what is sent in place of others, and which no page has. */
#include "plugins/cors/origin.h"

#include "testing.h"

TEST(origins_that_browsers_send)
{
    static const struct {
        const char *text, *sent;
    } cases[] = {
        {"https://example.org", "https://example.org"},
        {"http://localhost", "http://localhost"},
        {"http://localhost:3000", "http://localhost:3000"},
        {"https://a_b.example-1.org.", "https://a_b.example-1.org."},
        {"https://xn--bcher-kva.example", "https://xn--bcher-kva.example"},
        {"http://192.0.2.1:8080", "http://192.0.2.1:8080"},
        {"http://[2001:db8::1]:81", "http://[2001:db8::1]:81"},
        {"chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"},
        {"capacitor://localhost", "capacitor://localhost"},
        {"file://", "file://"},
        /* others are written as these */
        {"HTTPS://Example.ORG", "https://example.org"},
        {"https://example.org/", "https://example.org"},
        {"https://example.org/app?x=1", "https://example.org"},
        {"https://example.org?x", "https://example.org"},
        {"https://example.org#top", "https://example.org"},
        {"https://example.org\\", "https://example.org"},
        {"https://example.org:443", "https://example.org"},
        {"https://example.org:0443", "https://example.org"},
        {"https://example.org:", "https://example.org"},
        {"http://example.org:80/", "http://example.org"},
        {"http://example.org:443", "http://example.org:443"},
        {"https://example.org:80", "https://example.org:80"},
        {"http://example.org:08080", "http://example.org:8080"},
        {"https://user:pass@example.org", "https://example.org"},
        {"ws://example.org", "http://example.org"},
        {"wss://example.org:443", "https://example.org"},
        {"http://[2001:DB8:0::1]", "http://[2001:db8::1]"},
        {"http://[::ffff:192.0.2.1]", "http://[::ffff:c000:201]"},
        {"Capacitor://localhost/", "capacitor://localhost"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MK_BUF_ON_STACK(sent, 256);
        const char *why = origin_print(mk_str_c(cases[i].text), &sent);
        if (why || !mk_str_eq(mk_buf_str(&sent), mk_str_c(cases[i].sent)))
            fail_msg("%s: %s %.*s", cases[i].text, why ? why : "", MK_STR_ARG(mk_buf_str(&sent)));
    }
}

TEST(origins_that_no_page_has)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "empty"},
        {"example.org", "no scheme"},
        {"localhost:3000", "no scheme"},
        {"https:/example.org", "no scheme"},
        {"://example.org", "its scheme"},
        {"ht%tp://example.org", "its scheme"},
        {"null", "sandbox"},
        {"https://a.example,https://b.example", "a list in one word"},
        {"https://a.example;", "a list in one word"},
        {"https://a.example https://b.example", "a list in one word"},
        {"https://*.example", "a * alone"},
        {"https://*", "a * alone"},
        {"*.example", "a * alone"},
        {"http://localhost:*", "a * alone"},
        {"https://", "no host"},
        {"https:///a", "no host"},
        {"https://:8443", "no host"},
        {"https://b\xc3\xbc"
         "cher.example",
         "in ASCII"},
        {"https://a%20b.example", "no name has"},
        {"https://a\"b.example", "no name has"},
        {"http://127.1", "its address"},
        {"http://0x7f.1", "its address"},
        {"http://192.0.2.01", "its address"},
        {"http://192.0.2.256", "its address"},
        {"http://[::1", "its address"},
        {"http://[::1%25eth0]", "its address"},
        {"http://[192.0.2.1]", "its address"},
        {"https://example.org:0", "its port"},
        {"https://example.org:65536", "its port"},
        {"https://example.org:https", "its port"},
        {"http://[::1]8080", "its port"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MK_BUF_ON_STACK(sent, 256);
        const char *why = origin_print(mk_str_c(cases[i].text), &sent);
        if (!why || !strstr(why, cases[i].why))
            fail_msg("%s: %s", cases[i].text, why ? why : "no fault");
    }
}

TEST(origins_flush_against_a_guard)
{
    static const char *const texts[] = {"h", "https://", "http://[::1]", "http://[::1]:", "https://a:", "a@", "://"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        MK_BUF_ON_STACK(sent, 64);
        size_t len = strlen(texts[i]);
        char *p = mk_test_guarded(texts[i], len);
        origin_print(mk_str(p, len), &sent);
        mk_test_unguard(p, len);
    }
}

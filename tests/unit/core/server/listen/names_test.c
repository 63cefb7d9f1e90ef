// SPDX-License-Identifier: Apache-2.0
/* Names in Listen lines: what is a name, what a file of hosts says of it. */
#include "testing.h"

#include "server/listen/names.h"

TEST(what_is_a_name)
{
    static const struct {
        const char *text, *name;
    } rows[] = {
        {"localhost:80", "localhost"},
        {"LocalHost:0", "LocalHost"},
        {"a_b-c.d1:x", "a_b-c.d1"},
        {"80", NULL},
        {"127.0.0.1:80", NULL},
        {"[::1]:80", NULL},
        {"*:80", NULL},
        {":80", NULL},
        {"", NULL},
        {"unix:/run/x", NULL},
        {"local host:80", NULL},
        {"localhost", NULL},
        {"a/b:80", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_str name;
        char *text = mk_test_guarded(rows[i].text, strlen(rows[i].text));
        bool is = mk__listen_names_split(mk_str(text, strlen(rows[i].text)), &name);
        if (is != !!rows[i].name || (is && !mk_str_eq(name, mk_str_c(rows[i].name))))
            fail_msg("%s", rows[i].text);
        mk_test_unguard(text, strlen(rows[i].text));
    }
}

static const char hosts[] = "# 10.0.0.9 commented\n"
                            "127.0.0.1\tlocalhost\n"
                            "  10.0.0.1   one  alias.test # trailing two\n"
                            "10.0.0.2 ONE\r\n"
                            "fd00::1 one\n"
                            "fe80::1 one\n" /* of which interface? */
                            "10.0.0.1 one again\n"
                            "nonsense one\n"
                            "12345678901234567890123456789012345678901234567890123456789012345:: one\n"
                            "\n"
                            "10.0.0.7\n"
                            "10.0.0.3 last";

TEST(file_of_hosts)
{
    static const struct {
        const char *name, *found;
    } rows[] = {
        {"localhost", "127.0.0.1:0 "},
        {"one", "10.0.0.1:0 [fd00::1]:0 "},
        {"alias.test", "10.0.0.1:0 "},
        {"two", ""},
        {"commented", ""},
        {"10.0.0.7", ""},
        {"again", "10.0.0.1:0 "},
        {"last", "10.0.0.3:0 "},
        {"las", ""},
    };
    char *text = mk_test_guarded(hosts, sizeof(hosts) - 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk__addr found[MK__LISTEN_NAMES_MAX];
        char storage[512];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        unsigned n =
            mk__listen_names_find(mk_str(text, sizeof(hosts) - 1), mk_str_c(rows[i].name), found, MK__LISTEN_NAMES_MAX);
        for (unsigned k = 0; k < n; k++) {
            mk__addr_print(&found[k], &out);
            mk_buf_addc(&out, ' ');
        }
        assert_string_equal(mk_buf_cstr(&out), rows[i].found);
    }
    mk_test_unguard(text, sizeof(hosts) - 1);
}

TEST(no_more_than_asked_for)
{
    struct mk__addr found[2];
    struct mk_str text = MK_STR("10.0.0.1 a\n10.0.0.2 a\n10.0.0.3 a\n");
    assert_int_equal(mk__listen_names_find(text, MK_STR("a"), found, 2), 2);
}

TEST(localhost)
{
    struct mk__addr found[MK__LISTEN_NAMES_MAX];
    const char *reason;
    int n = mk__listen_names_resolve(MK_STR("LOCALHOST"), found, MK__LISTEN_NAMES_MAX, &reason);
    assert_true(n == 1 || n == 2); /* this machine may have no IPv6 */
    assert_int_equal(found[0].sa.sa_family, AF_INET);
    assert_true(mk__listen_names_resolve(MK_STR("no.such.name.test"), found, MK__LISTEN_NAMES_MAX, &reason) < 0);
    assert_non_null(strstr(reason, "/etc/hosts"));
}

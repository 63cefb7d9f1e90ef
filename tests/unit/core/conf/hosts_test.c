// SPDX-License-Identifier: Apache-2.0
/* Hosts that begin within files: which set each line belongs to. */
#include "testing.h"

#include "conf/internal.h"
#include "conf/sample.h"

enum { HOSTS_MAX = 4 };

struct hosts {
    struct mk__conf *conf;
    struct mk__conf_set *sets[HOSTS_MAX];
    unsigned n;
};

static struct mk__conf_set *begin_host(void *ctx)
{
    struct hosts *hosts = ctx;
    return hosts->n < HOSTS_MAX ? hosts->sets[hosts->n++] = mk__conf_set_new(hosts->conf, MK_CONF_SCOPE_HOST) : NULL;
}

/* Appends "a b: /x" for a host with these names, and sections [AUTH] of these locations. */
static void print_host(const struct mk__conf_set *set, struct mk_buf *out)
{
    const struct sample_host *host = mk__conf_get(set, &sample_host);
    const struct sample_auth *auth = mk__conf_get(set, &sample_auth);
    mk_buf_adds(out, out->len ? MK_STR("; ") : MK_STR(""));
    for (uint32_t i = 0; i < host->names.n; i++)
        mk_buf_addf(out, "%s%.*s", i ? " " : "", MK_STR_ARG(host->names.items[i]));
    mk_buf_addc(out, ':');
    for (; auth; auth = mk__conf_next(set, &sample_auth, auth))
        mk_buf_addf(out, " %.*s", MK_STR_ARG(auth->location));
}

struct host_case {
    enum mk_conf_scope scope;
    const char *text, *hosts, *problems;
};

#define SERVER MK_CONF_SCOPE_SERVER
#define HOST MK_CONF_SCOPE_HOST
#define AUTH(location) "[AUTH]\n Location " location "\n"

static const struct host_case cases[] = {
    {SERVER, "[SERVER]\n Workers 1\n", "", ""},
    {SERVER, "[HOST a]\n", "a:", ""},
    {SERVER, "[HOST]\n ServerName a\n", "a:", ""},
    {SERVER, "[HOST a b]\n ServerName c d\n ServerName e\n", "a b c d e:", ""},
    {SERVER, "[HOST]\n[HOST]\n", ":; :", ""},
    {SERVER, AUTH("/all") "[HOST a]\n" AUTH("/a") "[HOST b]\n" AUTH("/b") AUTH("/c"), "a: /a; b: /b /c", ""},
    {SERVER, "@SET x=b c\n[ host  a\t${x} \"d\" ] # why\n", "a b c d:", ""},
    {SERVER, "[HOST a]\n Nonsense 1\n[HOST b]\n", "a:; b:", "t:2:2: error: unknown key \"Nonsense\" in [HOST]\n"},
    {SERVER, "[HOST ${none:-a}]\n", "a:", ""},
    {SERVER, "[HOST a b#]\n", "a b#:", ""},
    {SERVER, "[HOST a]\n[SERVER]\n Workers 1\n[AUTH]\n Location /a\n", "a: /a",
     "t:2:1: error: [SERVER] is of the server: write it in monkey.conf, above the first [HOST]\n"},
    {SERVER, "[AUTH a]\n Location /\n", "", "t:1:1: error: unknown section [AUTH a]; did you mean [AUTH]?\n"},
    {SERVER, "[HOST a\n ServerName b\n", "", "t:1:8: error: the section's name is never closed with ]\n"},
    {HOST, "[HOST a]\n" AUTH("/a"), "a: /a", ""},
    {HOST, "[HOST a]\n[HOST]\n ServerName b\n", "a:; b:", ""},
    {HOST, AUTH("/a") "[HOST a]\n[HOST b]\n" AUTH("/b"), "a: /a; b: /b", ""},
};

/* Returns whether the text has these hosts and problems, of which only the first lines are compared. */
static bool matches(const struct host_case *c)
{
    struct mk__conf *conf = sample_new();
    struct hosts hosts = {.conf = conf};
    struct mk_buf found, problems;
    mk_buf_init(&found, 1 << 16);
    mk_buf_init(&problems, 1 << 16);
    mk__conf_on_host(conf, &(struct mk__conf_hosts){"HOST", "ServerName", begin_host, &hosts});
    struct mk__conf_set *set = mk__conf_set_new(conf, c->scope);
    mk__conf_read_text(conf, set, "t", mk_str_c(c->text));
    if (c->scope == HOST)
        print_host(set, &found);
    for (unsigned i = 0; i < hosts.n; i++)
        print_host(hosts.sets[i], &found);
    mk__conf_diagnostics(conf, &problems);
    bool same = strcmp(mk_buf_cstr(&found), c->hosts) == 0 &&
                (c->problems[0] ? mk_str_starts(mk_buf_str(&problems), mk_str_c(c->problems)) : !problems.len);
    if (!same)
        print_error("%s\n%s\n%s\n", c->text, mk_buf_cstr(&found), mk_buf_cstr(&problems));
    mk_buf_release(&found);
    mk_buf_release(&problems);
    mk__conf_free(conf);
    return same;
}

TEST(where_lines_belong)
{
    unsigned failed = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        failed += !matches(&cases[i]);
    assert_int_equal(failed, 0);
}

/* Without memory for a further host. */
TEST(too_many)
{
    struct mk__conf *conf = sample_new();
    struct hosts hosts = {.conf = conf};
    mk__conf_on_host(conf, &(struct mk__conf_hosts){"HOST", "ServerName", begin_host, &hosts});
    struct mk__conf_set *set = mk__conf_set_new(conf, SERVER);
    assert_int_equal(mk__conf_read_text(conf, set, "t", MK_STR("[HOST a]\n[HOST b]\n[HOST c]\n[HOST d]\n[HOST e]\n")),
                     -ENOMEM);
    mk__conf_free(conf);
}

/* A host of a part of a file has no name by that file. */
TEST(parts)
{
    struct mk__conf *conf = sample_new();
    struct hosts hosts = {.conf = conf};
    mk__conf_on_host(conf, &(struct mk__conf_hosts){"HOST", "ServerName", begin_host, &hosts});
    struct mk__conf_set *set = mk__conf_set_new(conf, SERVER);
    assert_int_equal(mk__conf_read_text(conf, set, "d/t", MK_STR("[HOST a]\n ServerName b\n")), 0);
    assert_true(mk__conf_is_part(hosts.sets[0]));
    assert_false(mk__conf_is_part(set));
    assert_int_equal(mk__conf_file_name(hosts.sets[0]).len, 0);
    const struct sample_host *host = mk__conf_get(hosts.sets[0], &sample_host);
    struct mk__conf_origin first = mk__conf_origin(hosts.sets[0], host, offsetof(struct sample_host, names), 0);
    struct mk__conf_origin second = mk__conf_origin(hosts.sets[0], host, offsetof(struct sample_host, names), 1);
    assert_int_equal(first.line, 1);
    assert_int_equal(first.col, 7);
    assert_int_equal(second.line, 2);
    mk__conf_free(conf);
}

TEST_FILE(NULL, NULL)

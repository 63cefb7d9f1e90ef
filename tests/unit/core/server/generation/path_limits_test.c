// SPDX-License-Identifier: Apache-2.0
/* Which limits the requests of a path have: those of a section, the host and the server. */
#include "testing.h"

#include "server/generation/path_limits.h"

static struct mk_generation generation;
static struct mk_host host;

static struct mk__conf_set *read_set(enum mk_conf_scope scope, const char *text)
{
    struct mk__conf_set *set = mk__conf_set_new(generation.conf, scope);
    assert_non_null(set);
    assert_int_equal(mk__conf_read_text(generation.conf, set, scope ? "host" : "server", mk_str_c(text)), 0);
    return set;
}

static void load(const char *server_text, const char *host_text)
{
    generation = (struct mk_generation){.hosts = &host, .conf = mk__conf_new()};
    mk_arena_init(&generation.arena, NULL, 1 << 20, NULL, 0);
    assert_int_equal(mk__conf_declare(generation.conf, &mk__section_server, NULL), 0);
    assert_int_equal(mk__conf_declare(generation.conf, &mk__section_host, NULL), 0);
    assert_int_equal(mk__conf_declare(generation.conf, &mk__section_limits, NULL), 0);
    generation.set = read_set(MK_CONF_SCOPE_SERVER, server_text);
    mk__settings_http(mk__conf_get(generation.set, &mk__section_server), &generation.http);
    host = (struct mk_host){.generation = &generation, .set = read_set(MK_CONF_SCOPE_HOST, host_text)};
    mk__conf_set_defaults(generation.conf, host.set, generation.set);
    host.settings = mk__conf_get(host.set, &mk__section_host);
    host.limits = generation.http.limits;
    mk__settings_limits(&host.settings->limits, &host.limits);
    assert_int_equal(mk__path_limits_make(&generation, &host), 0);
}

static void unload(void)
{
    mk__conf_free(generation.conf);
    mk_arena_release(&generation.arena);
}

TEST(no_sections)
{
    load("[SERVER]\n", "[HOST]\n");
    assert_null(host.path_limits);
    unload();
}

TEST(every_limit)
{
    load("[SERVER]\n",
         "[HOST]\n[LIMITS]\n Match =/x\n BodyTimeout 1\n MinBodyRate 2\n HandlerTimeout 3\n SendTimeout 4\n"
         " MaxRequestSize 5\n MaxBodySize 6\n MaxDiscardSize 7\n");
    const struct mk__http_limits *limits = mk__path_limits_find(&host, MK_STR("/x"));
    assert_int_equal(limits->timeout_ms[MK__TIMEOUT_BODY], 1000);
    assert_int_equal(limits->body_rate_min, 2);
    assert_int_equal(limits->timeout_ms[MK__TIMEOUT_HANDLER], 3000);
    assert_int_equal(limits->timeout_ms[MK__TIMEOUT_SEND], 4000);
    assert_int_equal(limits->collect_bytes_max, 5 * 1024);
    assert_int_equal(limits->body_bytes_max, 6);
    assert_int_equal(limits->discard_bytes_max, 7);
    assert_int_equal(limits->timeout_ms[MK__TIMEOUT_IDLE], host.limits.timeout_ms[MK__TIMEOUT_IDLE]);
    assert_ptr_equal(mk__path_limits_find(&host, MK_STR("/xy")), &host.limits);
    unload();
}

static const struct {
    const char *path;
    unsigned body_bytes_max, discard_bytes_max;
} rows[] = {
    {"/own", 11, 20},       /* of the first section; the rest is the host's */
    {"/own/2", 11, 20},     /* not of the second, which matches, too */
    {"/two", 10, 22},       /* as a whole: MaxBodySize is the host's, not that of the shared section */
    {"/shared", 10, 33},    /* [HOST] sets MaxBodySize, and has precedence over monkey.conf */
    {"/elsewhere", 10, 20}, /* the host's */
};

TEST(precedence)
{
    load("[SERVER]\n MaxBodySize 1\n MaxDiscardSize 2\n"
         "[LIMITS]\n Match /two\n MaxBodySize 30\n[LIMITS]\n Match /shared\n MaxBodySize 31\n MaxDiscardSize 33\n",
         "[HOST]\n MaxBodySize 10\n"
         "[LIMITS]\n Match /own\n MaxBodySize 11\n MaxDiscardSize 20\n[LIMITS]\n Match ~^/(two|own)\n MaxDiscardSize "
         "22\n"
         "[LIMITS]\n Match /elsewhere\n MaxDiscardSize 20\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct mk__http_limits *limits = mk__path_limits_find(&host, mk_str_c(rows[i].path));
        assert_int_equal(limits->body_bytes_max, rows[i].body_bytes_max);
        assert_int_equal(limits->discard_bytes_max, rows[i].discard_bytes_max);
    }
    assert_int_equal(host.path_limits->preliminary.body_bytes_max, 11);
    assert_int_equal(host.path_limits->preliminary.discard_bytes_max, 2);
    assert_int_equal(host.path_limits->n, 5);
    unload();
}

TEST(no_path)
{
    load("[SERVER]\n", "[HOST]\n[LIMITS]\n Match /a\n[LIMITS]\n MaxBodySize 7\n");
    assert_int_equal(mk__path_limits_find(&host, MK_STR("*"))->body_bytes_max, 7);
    assert_int_equal(mk__path_limits_find(&host, MK_STR(""))->body_bytes_max, 7);
    unload();
}

TEST(a_pattern_that_fails)
{
    char path[3001] = "/";
    memset(path + 1, 'a', sizeof(path) - 3);
    path[sizeof(path) - 2] = '!';
    load("[SERVER]\n", "[HOST]\n[LIMITS]\n Match ~^/(a+)+$\n MaxBodySize 1\n");
    assert_null(mk__path_limits_find(&host, mk_str_c(path)));
    assert_ptr_equal(mk__path_limits_find(&host, MK_STR("/b")), &host.limits);
    unload();
}

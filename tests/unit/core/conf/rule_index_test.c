// SPDX-License-Identifier: Apache-2.0
/* Indexes of rules: the same rules in the same order as one by one, in a host's file and in that of all hosts. */
#include "testing.h"

#include <stdio.h>

#include "conf/conf.h"

struct rule {
    struct mk_pattern match, other;
};

/* clang-format off */
static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct rule, match, "Match", "/", "Which paths."),
    MK_CONF_KEY_PATTERN(struct rule, other, "Other", "/", "Which other paths."),
    {0},
};
static const struct mk_conf_section section = {
    .name = "RULE", .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT, .keys = keys, .size = sizeof(struct rule),
    .doc = "A rule.",
};
/* clang-format on */

static struct mk__conf *conf;
static struct mk__conf_set *host, *server;

static struct mk__conf_set *read_rules(enum mk_conf_scope scope, unsigned n)
{
    static const char *const forms[] = {"=/a/%u", "/a/%u", "/b%u/", "/b/%u/*.x", "*.%u", "/**/c%u", "/a"};
    char text[16384];
    struct mk_buf out;
    struct mk__conf_set *set = mk__conf_set_new(conf, scope);
    mk_buf_init_fixed(&out, text, sizeof(text));
    for (unsigned i = 0; i < n; i++) {
        char pattern[32];
        snprintf(pattern, sizeof(pattern), forms[i % COUNT(forms)], i / COUNT(forms) % 5);
        mk_buf_addf(&out, "[RULE]\n    Match %s\n    Other /a/%u\n", pattern, i);
    }
    assert_int_equal(mk__conf_read_text(conf, set, "t", mk_buf_str(&out)), 0);
    return set;
}

static void open_sets(unsigned n_host, unsigned n_server)
{
    conf = mk__conf_new();
    assert_int_equal(mk__conf_declare(conf, &section, NULL), 0);
    server = read_rules(MK_CONF_SCOPE_SERVER, n_server);
    assert_int_equal(mk__conf_check(conf, server), 0);
    host = read_rules(MK_CONF_SCOPE_HOST, n_host);
    mk__conf_set_defaults(conf, host, server);
    assert_int_equal(mk__conf_check(conf, host), 0);
}

static const struct rule *find_next(size_t pattern, struct mk_str path, const struct rule *rule)
{
    return mk__rule_index_next(host, &section, pattern, path, rule);
}

/* Compares with each rule in turn; returns how many the index has found. */
static unsigned compare_matches(struct mk_str path)
{
    size_t match = offsetof(struct rule, match);
    const struct rule *next = find_next(match, path, NULL);
    unsigned n = 0;
    for (const struct rule *r = mk__conf_get(host, &section); r; r = mk__conf_next(host, &section, r)) {
        if (r != next) {
            assert_int_equal(mk_pattern_match(&r->match, path), 0);
            continue;
        }
        next = find_next(match, path, r);
        n++;
    }
    assert_null(next);
    return n;
}

static void compare_covers(const struct mk__conf_set *set, const struct rule *later)
{
    size_t match = offsetof(struct rule, match);
    const struct rule *next = mk__rule_index_next_cover(set, &section, match, &later->match, NULL);
    for (const struct rule *r = mk__conf_get(set, &section); r != later; r = mk__conf_next(set, &section, r))
        if (r == next)
            next = mk__rule_index_next_cover(set, &section, match, &later->match, r);
        else
            assert_false(mk_pattern_covers(&r->match, &later->match));
    assert_ptr_equal(next, later);
}

static const struct {
    unsigned host, server;
} sizes[] = {{0, 0}, {3, 4}, {0, 50}, {50, 0}, {70, 3}, {3, 70}, {60, 90}};

TEST(matches)
{
    static const char *const paths[] = {"/",      "/a",       "/a/1",   "/a/1/x", "/a/12",    "/b3/x",
                                        "/b/2/y", "/b/2/y.x", "/x/y.4", "/x/c2",  "/nowhere", "*"};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        open_sets(sizes[i].host, sizes[i].server);
        for (size_t k = 0; k < COUNT(paths); k++)
            compare_matches(mk_str_c(paths[k]));
        mk__conf_free(conf);
    }
}

TEST(covers)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        open_sets(sizes[i].host, sizes[i].server);
        for (const struct rule *r = mk__conf_get(host, &section); r; r = mk__conf_next(host, &section, r)) {
            assert_true(mk__conf_is_of(mk__conf_is_of(host, r) ? host : server, r));
            compare_covers(mk__conf_is_of(host, r) ? host : server, r);
        }
        mk__conf_free(conf);
    }
}

/* Of 150 rules those without a literal beginning are left, and the ones that this path begins with. */
TEST(few_are_compared)
{
    open_sets(70, 80);
    assert_in_range(compare_matches(MK_STR("/nowhere")), 1, 50);
    /* another key than Match has no index */
    size_t other = offsetof(struct rule, other);
    unsigned n = 0;
    for (const struct rule *r = NULL; (r = find_next(other, MK_STR("/nowhere"), r)); n++)
        ;
    assert_int_equal(n, 150);
    mk__conf_free(conf);
}

// SPDX-License-Identifier: Apache-2.0
/* Keys of [HOST] that mean a section. */
#include "testing.h"

#include "conf/internal.h"
#include "conf/sample.h"

#include <stdio.h>

/* clang-format off */
/* a section that cannot repeat, whose short form has the name of a key of [HOST] */
static const struct mk_conf_short_value names_values[] = {{"all", "*"}, {0}};
static const struct mk_conf_short_form names_form = {
    .name = "ServerName", .key = "Name", .values = names_values, .doc = "A nickname."};
static const struct mk_conf_key names_keys[] = {
    MK_CONF_KEY_STRING(struct sample_auth, title, "Name", NULL, "The name."),
    {0},
};
static const struct mk_conf_section names = {
    .name = "NAMES", .scope = MK_CONF_SCOPE_HOST, .keys = names_keys, .size = sizeof(struct sample_auth),
    .short_form = &names_form,
};
/* clang-format on */

static struct mk__conf *new_conf(void)
{
    struct mk__conf *conf = sample_new();
    assert_int_equal(mk__conf_declare(conf, &names, "gate"), 0);
    return conf;
}

struct short_case {
    const char *text;     /* below "[HOST]" */
    const char *sections; /* as print_sections() has them */
    const char *problems;
};

static const struct short_case cases[] = {
    {"Route x", "route / x", ""},
    {"route x y", "route / x y", ""},
    {"Route /a x", "route /a x", ""},
    {"Route *.png x y", "route *.png x y", ""},
    {"Route =/a \"x y\" z", "route /a x y,z", ""},
    {"Route /only", "route / /only", ""},
    {"Route /a x\n Route /b y\n[ROUTE]\n Match /c", "route /a x; route /b y; route /c here", ""},
    {"@SET w=/a x\n[HOST]\n Route ${w} y", "route /a x y", ""},
    {"Detour On", "detour / here", ""},
    {"Detour off", "detour / a b", ""},
    {"Detour /a Off", "detour /a a b", ""},
    {"Detour all", "detour / a b", ""},
    {"ServerName all", "name *", ""},
    {"ServerName a all", "", ""},
    {"Route", "route / here", "t:2:2: error: \"Route\" wants a value\n"},
    {"Route ~( x", "route ( x", "t:2:9: error: \"Route\": the regular expression \"~(\" does not compile"},
    {"Detour", "detour / here", "t:2:2: error: \"Detour\" wants a value\n"},
    {"Detour perhaps", "detour / here", "t:2:9: error: \"Detour\" takes On, Off or all, not \"perhaps\"\n"},
    {"Detour /a On now", "detour /a here", "t:2:12: error: \"Detour\" takes On, Off or all, not \"On now\"\n"},
    {"Detour ${none}", "detour / here", "t:2:9: error: ${none} is neither set"},
    {"Route = x", "route / here", "t:2:8: error: a blank separates a key from its value, not \"=\""},
    {"Rout x", "", "t:2:2: error: unknown key \"Rout\" in [HOST]; did you mean \"Route\"?\n"},
    {"Spot x", "",
     "t:2:2: error: \"Spot\" belongs to the plugin \"cheetah\", which is not loaded: add \"Load cheetah\""},
    {"ServerName all\n[NAMES]\n Name b", "name *", "t:4:2: error: \"Name\" is set twice; the first time in line 2\n"},
    {"DocumentRoot /a\n[NAMES]\n Name b\n[HOST]\n ServerName all", "name b",
     "t:6:2: error: \"ServerName\" sets \"Name\" of [NAMES], which is set already in line 4\n"},
    {"DocumentRoot /a\n[AUTH]\n Location /\n Route x", "", "t:5:2: error: unknown key \"Route\" in [AUTH]"},
};

static void print_routes(const struct mk__conf_set *set, const struct mk_conf_section *section, const char *name,
                         struct mk_buf *out)
{
    for (const struct sample_route *route = mk__conf_get(set, section); route;
         route = mk__conf_next(set, section, route)) {
        mk_buf_addf(out, "%s%s %.*s", out->len ? "; " : "", name, MK_STR_ARG(route->match.text));
        for (uint32_t i = 0; i < route->to.n; i++)
            mk_buf_addf(out, "%s%.*s",
                        i && memchr(route->to.items[i - 1].p, ' ', route->to.items[i - 1].len) ? "," : " ",
                        MK_STR_ARG(route->to.items[i]));
    }
}

static void print_sections(const struct mk__conf_set *set, struct mk_buf *out)
{
    const struct sample_auth *own = mk__conf_get(set, &names);
    print_routes(set, &sample_route, "route", out);
    print_routes(set, &sample_detour, "detour", out);
    if (own->title.len)
        mk_buf_addf(out, "name %.*s", MK_STR_ARG(own->title));
}

static bool matches(const struct short_case *c)
{
    struct mk__conf *conf = new_conf();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_HOST);
    char text[400];
    MK_BUF_ON_STACK(sections, 400);
    MK_BUF_ON_STACK(problems, 4000);
    snprintf(text, sizeof(text), "%s%s\n", c->text[0] == '@' ? "" : "[HOST]\n ", c->text);
    mk__conf_read_text(conf, set, "t", mk_str_c(text));
    print_sections(set, &sections);
    mk__conf_diagnostics(conf, &problems);
    bool same = strcmp(mk_buf_cstr(&sections), c->sections) == 0 &&
                (c->problems[0] ? mk_str_starts(mk_buf_str(&problems), mk_str_c(c->problems)) : !problems.len);
    if (!same)
        print_error("%s\n%s\n%s\n", text, mk_buf_cstr(&sections), mk_buf_cstr(&problems));
    mk__conf_free(conf);
    return same;
}

TEST(sections)
{
    unsigned failed = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        failed += !matches(&cases[i]);
    assert_int_equal(failed, 0);
}

/* What is shown is the section, and can be read again. */
TEST(shown)
{
    struct mk__conf *conf = new_conf();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_HOST);
    MK_BUF_ON_STACK(out, 4000);
    assert_int_equal(mk__conf_read_text(conf, set, "t", MK_STR("[HOST]\n Route /a x y\n")), 0);
    mk__conf_show(set, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "[ROUTE]\n    Match                  /a  # t:2\n"
                                              "    To                     x y  # t:2\n"));
    mk__conf_free(conf);
}

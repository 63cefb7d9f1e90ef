// SPDX-License-Identifier: Apache-2.0
/* Which value wins: defaults, several files, options, before and after each other. */
#include "testing.h"

#include "conf/sample.h"

/* The steps are texts, and options as "key=value"; then three keys are listed with their origins. */
struct bind_case {
    const char *steps[5];
    const char *values;
    const char *problems;
};

static const struct bind_case cases[] = {
    {{NULL}, "workers 0 default, deny, ports 2001 default", ""},
    {{"[SERVER]\n Workers 1\n Deny a b\n Listen 80 tls\n"}, "workers 1 t:2, deny a t:3 b t:3, ports 80 t:4", ""},
    {{"[SERVER]\n Workers 1\n Deny a\n Listen 1\n", "[SERVER]\n Workers 2\n Deny b\n Listen 2\n"},
     "workers 2 t:2, deny a t:3 b t:3, ports 1 t:4 2 t:4",
     ""},
    {{"[SERVER]\n Workers 1\n Deny a\n Listen 1\n", "Workers=2", "Deny=b", "Listen=2", "Listen=3"},
     "workers 2 option, deny b option, ports 2 option 3 option",
     ""},
    {{"workers=2", "Workers=3", "Deny=x y", "Listen=2", "[SERVER]\n Workers 1\n Deny a\n Listen 1\n"},
     "workers 3 option, deny x y option, ports 2 option",
     ""},
    {{"Workers=2", "[SERVER]\n Workers x\n"},
     "workers 2 option, deny, ports 2001 default",
     "t:2:10: error: \"Workers\" wants a number from 0 to 64, not \"x\"\n Workers x\n         ^\n"},
    {{"[SERVER]\n Listen x\n Listen 80\n Listen y\n Listen 81\n"}, /* a wrong line is no item */
     "workers 0 default, deny, ports 80 t:3 81 t:5",
     "t:2:9: error: \"Listen\": \"x\" is no port\n Listen x\n        ^\n"
     "t:4:9: error: \"Listen\": \"y\" is no port\n Listen y\n        ^\n"},
    {{"Workers=65", "Listen=x", "Workrs=1", "Shell=x", "Title=a\nb"},
     "workers 0 default, deny, ports",
     "option: error: \"Workers\" wants a number from 0 to 64, not \"65\"\n"
     "option: error: \"Listen\": \"x\" is no port\n"
     "option: error: unknown key \"Workrs\" in [SERVER]; did you mean \"Workers\"?\n"
     "option: error: \"Shell\" belongs to the plugin \"cheetah\", which is not loaded: add \"Load cheetah\" to "
     "plugins.load\n"
     "option: error: the value is too long or contains control bytes\n"},
};

static void run_step(struct mk__conf *conf, struct mk__conf_set *set, const char *step)
{
    char key[32] = "";
    const char *equals = strchr(step, '=');

    if (*step == '[') {
        mk__conf_read_text(conf, set, "t", mk_str_c(step));
        return;
    }
    memcpy(key, step, (size_t)(equals - step));
    mk__conf_override(conf, set, "SERVER", key, mk_str_c(equals + 1), "option");
}

static void list_values(const struct mk__conf_set *set, struct mk_buf *out)
{
    const struct sample_server *s = mk__conf_get(set, &sample_server);

    mk_buf_addf(out, "workers %d ", (int)s->workers);
    mk__conf_origin_print(mk__conf_origin(set, s, offsetof(struct sample_server, workers), 0), out);
    mk_buf_addf(out, ", deny");
    for (unsigned i = 0; i < s->deny.n; i++) {
        mk_buf_addf(out, " %.*s ", MK_STR_ARG(s->deny.items[i]));
        mk__conf_origin_print(mk__conf_origin(set, s, offsetof(struct sample_server, deny), i), out);
    }
    mk_buf_addf(out, ", ports");
    for (unsigned i = 0; i < s->ports.n; i++) {
        mk_buf_addf(out, " %d ", (int)s->ports.items[i].port);
        mk__conf_origin_print(mk__conf_origin(set, s, offsetof(struct sample_server, ports), i), out);
    }
}

TEST(precedence)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bind_case *c = &cases[i];
        struct mk__conf *conf = sample_new();
        struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
        struct mk_buf out;

        mk_buf_init(&out, 1 << 16);
        for (size_t s = 0; s < COUNT(c->steps) && c->steps[s]; s++)
            run_step(conf, set, c->steps[s]);
        list_values(set, &out);
        assert_string_equal(mk_buf_cstr(&out), c->values);
        out.len = 0;
        mk__conf_diagnostics(conf, &out);
        assert_string_equal(mk_buf_cstr(&out), c->problems);
        mk_buf_release(&out);
        mk__conf_free(conf);
    }
}

TEST(override_results)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    const struct sample_server *server = mk__conf_get(set, &sample_server);
    assert_int_equal(mk__conf_override(conf, set, "server", "title", MK_STR("a # ${b}"), "option -t"), 0);
    assert_str_equal(server->title, "a # ${b}");
    assert_int_equal(mk__conf_override(conf, set, "SERVER", "Workers", MK_STR("99"), "option -w"), -EINVAL);
    assert_int_equal(mk__conf_override(conf, set, "SERVER", "Workers", MK_STR("9"), "option -w"), 0);
    assert_int_equal(server->workers, 9);
    assert_int_equal(mk__conf_override(conf, set, "HOST", "DocumentRoot", MK_STR("/"), "option -o"), -EINVAL);
    assert_int_equal(mk__conf_errors(conf), 2);
    mk__conf_free(conf);
}

/* A default that its own row refuses is reported, not swallowed. */
TEST(wrong_default)
{
    static const struct mk_conf_key keys[] = {
        MK_CONF_KEY_BOOL(struct sample_server, keep_alive, "Flag", "Maybe", "x"),
        MK_CONF_KEY_STRING(struct sample_server, title, "Text", "${NOWHERE_AT_ALL}", "x"),
        {0},
    };
    static const struct mk_conf_section section = {.name = "A", .keys = keys, .size = sizeof(struct sample_server)};
    struct mk__conf *conf = mk__conf_new();
    struct mk_buf out;
    assert_int_equal(mk__conf_declare(conf, &section, NULL), 0);
    assert_non_null(mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER));
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    assert_string_equal(mk_buf_cstr(&out),
                        "error: the default of \"Flag\" wants On or Off, not \"Maybe\"\n"
                        "error: the default of \"Text\": ${NOWHERE_AT_ALL} is neither set with @SET nor in the "
                        "environment; ${NOWHERE_AT_ALL:-x} would give it a default\n");
    mk_buf_release(&out);
    mk__conf_free(conf);
}

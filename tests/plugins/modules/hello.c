// SPDX-License-Identifier: Apache-2.0
/*
 * hello: a plugin in its own file, with a section and a host's state.
 */
#include <monkey/plugin.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_hello;

struct settings {
    struct mk_str greeting;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(struct settings, greeting, "Greeting", "hello", "What is said."),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "HELLO",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct settings),
     .keys = keys,
     .doc = MK_CONF_DOC("Greetings.")},
    {0},
};

static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = (void *)(uintptr_t)mk_host_conf(host, sections);
    return 0;
}

static int greet(struct mk_request *req)
{
    const struct settings *s = mk_request_host_state(req, &mk_plugin_hello);
    if (!mk_str_eq(mk_request_path(req), MK_STR("/hello")))
        return MK_DECLINED;
    if (mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain")) < 0 ||
        mk_response_write_ref(req, s->greeting) < 0)
        return -ENOMEM;
    mk_response_end(req);
    return 0;
}

MK_PLUGIN(hello) = {
    MK_PLUGIN_HEAD("hello", "1.0", "greets"),
    .sections = sections,
    .host_start = start_host,
    .on_content = greet,
};

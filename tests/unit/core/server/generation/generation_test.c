// SPDX-License-Identifier: Apache-2.0
/* What plugins that carry connections ask a generation. */
#include "testing.h"

#include "server/generation/generation.h"

#include <monkey/hooks.h>

#include <errno.h>
#include <netinet/in.h>

static const struct mk_transport ours = {.name = "ours"}, others = {.name = "others"};
static const struct mk_plugin_interfaces interfaces = {.transport = &ours}, none = {.transport = NULL};
static const struct mk_plugin plugin = {.name = "ours", .interfaces = &interfaces},
                              unused = {.name = "x", .interfaces = &none};

static struct mk__listen_conf listener(const struct mk_transport *transport, uint16_t port)
{
    struct mk__listen_conf one = {.addr = {.len = sizeof(one.addr.in)}, .mode = {.transport = transport}};
    one.addr.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    return one;
}

TEST(the_port_of_the_first_listener)
{
    struct mk__listen_conf items[3] = {listener(&others, 80), listener(&ours, 8443), listener(&ours, 443)};
    struct mk__settings settings = {.listen = {items, 3}};
    struct mk_generation g = {.settings = &settings};
    assert_int_equal(mk_generation_port(&g, &plugin), 8443);
    assert_int_equal(mk_generation_port(&g, &unused), -ENOENT);
    settings.listen.n = 1;
    assert_int_equal(mk_generation_port(&g, &plugin), -ENOENT);
    items[0] = (struct mk__listen_conf){.mode = {.transport = &ours}};
    items[0].addr.sa.sa_family = AF_UNIX;
    assert_int_equal(mk_generation_port(&g, &plugin), 0);
}

TEST(names)
{
    struct mk_str names[2] = {MK_STR("a.example"), MK_STR("*.b.example")};
    struct mk__host_settings settings = {.names = {names, 2}};
    struct mk_host host = {.settings = &settings};
    struct mk_generation g = {.hosts = &host, .default_host = &host};
    assert_str_equal(mk_host_name(&host, 0), "a.example");
    assert_str_equal(mk_host_name(&host, 1), "*.b.example");
    assert_null(mk_host_name(&host, 2).p);
    assert_ptr_equal(mk_generation_host(&g, NULL, MK_STR("any")), &host);
}

TEST(protocols)
{
    struct mk_generation g = {0};
    assert_true(mk_generation_supports_alpn(&g, MK_STR("http/1.1")));
    assert_false(mk_generation_supports_alpn(&g, MK_STR("h2")));
    assert_false(mk_generation_supports_alpn(&g, MK_STR("HTTP/1.1")));
    assert_false(mk_generation_supports_alpn(&g, MK_STR("")));
}

TEST(a_sentence_about_a_listener)
{
    struct mk__listen_conf items[1] = {listener(&ours, 443)};
    struct mk__settings settings = {.listen = {items, 1}};
    struct mk_generation g = {.settings = &settings, .conf = mk__conf_new()};
    struct mk_buf text;
    assert_non_null(g.conf);
    g.set = mk__conf_set_new(g.conf, MK_CONF_SCOPE_SERVER);
    assert_non_null(g.set);
    mk_generation_listen_error(&g, &plugin, "100% wrong");
    assert_int_equal(mk__conf_errors(g.conf), 1);
    mk_buf_init(&text, 4096);
    mk__conf_diagnostics(g.conf, &text);
    assert_non_null(strstr(mk_buf_cstr(&text), "100% wrong"));
    mk_buf_release(&text);
    mk__conf_free(g.conf);
}

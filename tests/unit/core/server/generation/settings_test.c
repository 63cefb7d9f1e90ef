// SPDX-License-Identifier: Apache-2.0
/* From the directives of the core to what HTTP and the listeners get. */
#include "testing.h"

#include <stdio.h>

#include "conf/conf.h"
#include "server/generation/settings.h"

static struct mk__conf *conf;
static struct mk__conf_set *set;
static const struct mk__settings *settings;

static int read_conf(const char *text)
{
    conf = mk__conf_new();
    assert_non_null(conf);
    assert_int_equal(mk__conf_declare(conf, &mk__section_server, NULL), 0);
    set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    assert_non_null(set);
    mk__conf_read_text(conf, set, "test", mk_str_c(text));
    int err = mk__conf_check(conf, set);
    settings = mk__conf_get(set, &mk__section_server);
    return mk__conf_errors(conf) ? -1 : err;
}

TEST(defaults)
{
    struct mk__http_settings http;
    assert_int_equal(read_conf("[SERVER]\n"), 0);
    mk__settings_http(settings, &http);
    assert_int_equal(settings->listen.n, 1);
    assert_true(settings->listen.items[0].addr.any);
    assert_int_equal(mk__addr_port(&settings->listen.items[0].addr), 2001);
    for (int i = 0; i < MK__TIMEOUTS; i++)
        assert_true(http.limits.timeout_ms[i] > 0); /* every wait has a limit */
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_HEAD], 15000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_BODY], 30000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_HANDLER], 60000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_SEND], 30000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_IDLE], 5000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_LINGER], 2000);
    assert_int_equal(http.head.line_bytes_max, 8192);
    assert_int_equal(http.head.head_bytes_max, 16384);
    assert_int_equal(http.head.fields_max, 100);
    assert_int_equal(http.limits.collect_bytes_max, 32768);
    assert_int_equal(http.limits.body_bytes_max, 1 << 30);
    assert_int_equal(http.limits.discard_bytes_max, 65536);
    assert_int_equal(http.limits.body_rate_min, 256);
    assert_int_equal(http.requests_max, 1000);
    assert_true(http.keep_alive);
    assert_false(http.notify_accept || http.notify_close || http.trusted_proxies.use_forwarded ||
                 http.trusted_proxies.networks.n);
    assert_true(mk_str_starts(http.server_line, MK_STR("Server: Monkey/")));
    mk__conf_free(conf);
}

TEST(every_row_arrives)
{
    struct mk__http_settings http;
    assert_int_equal(read_conf("[SERVER]\n"
                               "    Listen 127.0.0.1:1\n    Listen unix:/x\n    Timeout 1\n    BodyTimeout 2s\n"
                               "    MinBodyRate 3\n    HandlerTimeout 400ms\n    SendTimeout 5\n    KeepAlive Off\n"
                               "    KeepAliveTimeout 6\n    MaxKeepAliveRequest 0\n    LingerTimeout 7\n"
                               "    MaxRequestLine 100\n    MaxHeadSize 65535B\n    MaxHeaders 8\n"
                               "    MaxRequestSize 9\n    MaxBodySize 10M\n    MaxDiscardSize 0\n    HideVersion On\n"),
                     0);
    mk__settings_http(settings, &http);
    assert_int_equal(settings->listen.n, 2); /* instead of the default */
    assert_str_equal(settings->listen.items[1].text, "unix:/x");
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_HEAD], 1000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_BODY], 2000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_HANDLER], 400);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_SEND], 5000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_IDLE], 6000);
    assert_int_equal(http.limits.timeout_ms[MK__TIMEOUT_LINGER], 7000);
    assert_int_equal(http.head.line_bytes_max, 100);
    assert_int_equal(http.head.head_bytes_max, 65535);
    assert_int_equal(http.head.fields_max, 8);
    assert_int_equal(http.limits.collect_bytes_max, 9 * 1024);
    assert_int_equal(http.limits.body_bytes_max, 10 << 20);
    assert_int_equal(http.limits.discard_bytes_max, 0);
    assert_int_equal(http.limits.body_rate_min, 3);
    assert_int_equal(http.requests_max, 0);
    assert_false(http.keep_alive);
    assert_str_equal(http.server_line, "Server: Monkey\r\n");
    mk__conf_free(conf);
    assert_int_equal(read_conf("[SERVER]\n    ServerHeader Off\n    ErrorLog stderr\n"), 0);
    mk__settings_http(settings, &http);
    assert_int_equal(http.server_line.len, 0);
    assert_int_equal(settings->error_log.len, 0);
    mk__conf_free(conf);
}

TEST(proxies)
{
    struct mk__http_settings http;
    struct mk_address address;
    assert_int_equal(read_conf("[SERVER]\n    Listen 80\n    Listen unix:/x PROXY\n    TrustedProxies 10.0.0.0/8 unix\n"
                               "    TrustedProxies 192.0.2.1\n    RealIPHeader forwarded\n"),
                     0);
    mk__settings_http(settings, &http);
    assert_false(settings->listen.items[0].mode.proxy);
    assert_true(settings->listen.items[1].mode.proxy);
    assert_str_equal(settings->listen.items[1].text, "unix:/x");
    assert_int_equal(http.trusted_proxies.networks.n, 3);
    assert_true(http.trusted_proxies.use_forwarded);
    assert_int_equal(mk_address_parse(MK_STR("192.0.2.1"), &address), 0);
    assert_true(mk_networks_contain(&http.trusted_proxies.networks, &address));
    mk__conf_free(conf);
}

static const struct {
    const char *line, *problem;
} wrong[] = {
    {"Listen 70000", "the port must be a number from 0 to 65535"},
    {"Listen localhost:x", "the port must be a number from 0 to 65535"},
    {"Listen no.such.name.test:80", "the name is not in /etc/hosts, and DNS is not asked: use an address"},
    {"Listen 127.0.0.300:80", "the address must be numeric: 127.0.0.1:80, [::1]:80 or *:80"},
    {"Listen 80 tls proxy liana", "one plugin carries connections, not tls and liana"},
    {"Listen proxy", "the port must be a number"},
    {"Listen 80 proxy", "Listen 80 proxy: TrustedProxies is empty"},
    {"TrustedProxies 10.0.0.0/8 localhost", "\"localhost\" is not a network"},
    {"RealIPHeader X-Real-IP", "\"RealIPHeader\" wants one of X-Forwarded-For, Forwarded"},
    {"Timeout 0", "Timeout"},
    {"Timeout 2h", "Timeout"},
    {"Workers 1025", "Workers"},
    {"MaxHeadSize 64K", "MaxHeadSize"},
    {"MaxHeadSize 4K", "MaxRequestLine is larger than MaxHeadSize, which includes it"},
    {"LogLevel loud", "LogLevel"},
    {"DiskThreads 17", "DiskThreads"},
    {"KeepAlive maybe", "KeepAlive"},
};

TEST(what_is_wrong_is_said)
{
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct mk_buf out;
        char text[128];
        snprintf(text, sizeof(text), "[SERVER]\n    %s\n", wrong[i].line);
        assert_int_equal(read_conf(text), -1);
        mk_buf_init(&out, 65536);
        mk__conf_diagnostics(conf, &out);
        if (!strstr(mk_buf_cstr(&out), wrong[i].problem))
            fail_msg("%s: %s", wrong[i].line, mk_buf_cstr(&out));
        assert_int_equal(mk__conf_errors(conf), 1);
        mk_buf_release(&out);
        mk__conf_free(conf);
    }
}

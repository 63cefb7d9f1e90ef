// SPDX-License-Identifier: Apache-2.0
/* Which protocol a backend is asked for, with what, and what it must respond. */
#include "testing.h"

#include "plugins/proxy/proxy.h"

static struct mk_str names[] = {MK_STR_INIT("websocket"), MK_STR_INIT("Raw/1")};
static const struct mk_conf_list both = {names, COUNT(names)}, none = {0};

TEST(choice)
{
    static const struct {
        const char *offered, *token;
    } rows[] = {
        {"websocket", "websocket"},
        {"WebSocket", "websocket"},
        {"h2c, websocket", "websocket"},
        {"raw/1", "Raw/1"},
        {" raw/1 ,\twebsocket", "Raw/1"},
        {"h2c", ""},
        {"raw", ""},
        {"", ""},
        {"websocket/13", ""},
        {",,websocket", "websocket"},
        {"websocketx", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_str_equal(upgrade_choose(&both, mk_str_c(rows[i].offered)), rows[i].token);
        assert_str_equal(upgrade_choose(&none, mk_str_c(rows[i].offered)), "");
    }
    assert_str_equal(upgrade_choose(&both, MK_STR_NONE), "");
}

static struct mk_str write_fields(const struct upgrade *u, char *to, size_t size)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, to, size);
    upgrade_write(u, &out);
    return mk_buf_str(&out);
}

TEST(fields)
{
    char storage[200];
    struct upgrade u = {.token = names[0]}, with_key = {.token = names[0], .key = "dGhlIHNhbXBsZSBub25jZQ=="};
    assert_str_equal(write_fields(&u, storage, sizeof(storage)), "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_false(upgrade_replaces(&u, MK_STR("Sec-WebSocket-Key")));
    assert_str_equal(write_fields(&with_key, storage, sizeof(storage)),
                     "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    assert_true(upgrade_replaces(&with_key, MK_STR("sec-websocket-key")));
    assert_false(upgrade_replaces(&with_key, MK_STR("Sec-WebSocket-Version")));
}

TEST(negotiated)
{
    const struct mk_str accept = MK_STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); /* RFC 6455 section 1.3 */
    static const struct upgrade unasked;
    struct upgrade u = {.token = names[0]};
    assert_false(upgrade_is_agreed(&unasked, MK_STR("websocket"), accept));
    assert_false(upgrade_is_agreed(&unasked, MK_STR_NONE, MK_STR_NONE));
    assert_true(upgrade_is_agreed(&u, MK_STR("WebSocket"), MK_STR_NONE));
    assert_false(upgrade_is_agreed(&u, MK_STR("websocket, x"), accept));
    assert_false(upgrade_is_agreed(&u, MK_STR_NONE, accept));
    u = (struct upgrade){.token = names[0], .key = "dGhlIHNhbXBsZSBub25jZQ=="};
    assert_true(upgrade_is_agreed(&u, MK_STR("websocket"), accept));
    assert_false(upgrade_is_agreed(&u, MK_STR("websocket"), MK_STR_NONE));
    assert_false(upgrade_is_agreed(&u, MK_STR("websocket"), MK_STR("S3PPLMBITXAQ9KYGZZHZRBK+XOO=")));
    assert_false(upgrade_is_agreed(&u, MK_STR("raw/1"), accept));
}

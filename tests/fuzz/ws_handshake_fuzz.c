// SPDX-License-Identifier: Apache-2.0
/*
 * Values of the WebSocket handshake: one byte of settings, then three lines: extensions, subprotocols or key, origin.
 * What the server chooses is within its settings, and its response is one that a client accepts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "websocket/ws.h"

static void expect(bool fine)
{
    if (!fine)
        abort();
}

/* Cuts a line off, as a copy. */
static struct mk_str cut_line(const uint8_t **p, size_t *size)
{
    const uint8_t *end = *size ? memchr(*p, '\n', *size) : NULL;
    size_t n = end ? (size_t)(end - *p) : *size;
    char *own = malloc(n ? n : 1);
    expect(own);
    if (n)
        memcpy(own, *p, n);
    *p += end ? n + 1 : n;
    *size -= end ? n + 1 : n;
    return (struct mk_str){own, n};
}

static void check_offers(struct mk_str line, uint8_t settings)
{
    struct mk__ws_deflate_params ours = {.on = true,
                                         .server_no_context = settings & 1,
                                         .client_no_context = settings & 2,
                                         .server_bits = settings & 4 ? 15 : 11,
                                         .client_bits = settings & 8 ? 15 : 10};
    const struct mk__ws_deflate_params all = {.on = true, .server_bits = 15, .client_bits = 15};
    struct mk__ws_deflate_params chosen = {}, accepted = {};
    const char *reason = NULL;
    struct mk_buf response;
    if (mk__ws_deflate_choose(line, &ours, &chosen) < 0 || !chosen.on)
        return;
    expect(chosen.server_bits >= 9 && chosen.server_bits <= ours.server_bits);
    expect(chosen.client_bits >= 8 && chosen.client_bits <= ours.client_bits);
    expect(chosen.server_no_context >= ours.server_no_context && chosen.client_no_context >= ours.client_no_context);
    mk_buf_init(&response, 1000);
    mk__ws_deflate_write_response(&response, &chosen);
    expect(!response.err);
    if (chosen.client_bits > 8) {
        expect(mk__ws_deflate_check(mk_buf_str(&response), &all, &accepted, &reason) == 0);
        chosen.write_server_bits = false;
        expect(memcmp(&chosen, &accepted, sizeof(chosen)) == 0);
    }
    mk_buf_release(&response);
}

static void check_response(struct mk_str line, uint8_t settings)
{
    const struct mk__ws_deflate_params ours = {.on = settings & 16,
                                               .server_no_context = settings & 1,
                                               .server_bits = settings & 4 ? 15 : 11,
                                               .client_bits = 15};
    struct mk__ws_deflate_params p = {};
    const char *reason = NULL;
    int result = mk__ws_deflate_check(line, &ours, &p, &reason);
    expect((reason != NULL) == (result < 0));
    expect(result < 0 || !p.on || (ours.on && p.server_bits <= ours.server_bits && p.server_bits >= 8));
}

static void check_words(struct mk_str line)
{
    struct mk_str chosen = mk__ws_choose_protocol(line, MK_STR("chat, superchat"));
    expect(!chosen.len || mk_str_eq(chosen, MK_STR("chat")) || mk_str_eq(chosen, MK_STR("superchat")));
    (void)mk__ws_choose_protocol(MK_STR("chat"), line);
    if (mk__ws_key_is_valid(line)) {
        char accept[MK_WS_ACCEPT_BYTES + 1];
        mk_ws_accept_key(accept, line);
        expect(strlen(accept) == MK_WS_ACCEPT_BYTES);
    }
}

static void check_origin(struct mk_str line, struct mk_str other)
{
    expect(mk__ws_origin_allowed(line, other, false, MK_STR("a, *")));
    bool same = mk__ws_origin_allowed(line, other, true, MK_STR_NONE);
    expect(!same || mk__ws_origin_allowed(line, other, true, MK_STR("https://example.com")));
    (void)mk__ws_origin_allowed(MK_STR("https://example.com"), line, true, other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    uint8_t settings = *data++;
    size--;
    struct mk_str extensions = cut_line(&data, &size), words = cut_line(&data, &size), origin = cut_line(&data, &size);
    check_offers(extensions, settings);
    check_response(extensions, settings);
    check_words(words);
    check_origin(origin, words);
    free((char *)(uintptr_t)extensions.p);
    free((char *)(uintptr_t)words.p);
    free((char *)(uintptr_t)origin.p);
    return 0;
}

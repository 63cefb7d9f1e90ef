// SPDX-License-Identifier: Apache-2.0
/*
 * gateway: answers as a plugin does that forwards requests: interim responses, the date of an origin, waits of its own,
 * trailers, notes, paths with an encoded slash. The path below /gateway/ names the behaviour; a number comes in the
 * query.
 */
#include <monkey/base/buf.h>
#include <monkey/hooks.h>
#include <monkey/plugin.h>

#include <stdio.h>

static uint64_t get_number(struct mk_request *req, uint64_t fallback)
{
    uint64_t value = fallback;
    mk_str_u64(mk_request_query(req), UINT64_MAX, &value);
    return value;
}

static void respond(struct mk_request *req, struct mk_str text)
{
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_write(req, text);
    mk_response_end(req);
}

/* ── a timer ── */

struct later {
    struct mk_timer timer;
    struct mk_request *req;
};

static void cancel_later(void *ctx)
{
    struct later *later = ctx;
    mk_timer_cancel(&later->timer);
}

static void call_later(struct mk_request *req, mk_timer_fn fn, uint32_t ms)
{
    struct later *later = mk_arena_zalloc(mk_request_arena(req), sizeof(*later));
    if (!later || mk_arena_defer(mk_request_arena(req), cancel_later, later) < 0) {
        mk_response_error(req, 503);
        return;
    }
    later->req = req;
    mk_timer_init(&later->timer, fn);
    mk_timer_arm(mk_request_loop(req), &later->timer, ms);
}

static void respond_later(struct mk_timer *timer)
{
    respond(MK_CONTAINER_OF(timer, struct later, timer)->req, MK_STR("later\n"));
}

/* ── interim responses ── */

static const struct mk_header_field hint = {MK_STR_INIT("Link"), MK_STR_INIT("</style.css>; rel=preload")};

static void send_hints(struct mk_request *req)
{
    for (uint64_t n = get_number(req, 1); n; n--)
        if (mk_response_interim(req, 103, &hint, 1) < 0) {
            mk_response_error(req, 500);
            return;
        }
    call_later(req, respond_later, 50);
}

static void echo(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)ctx;
    mk_response_write(req, piece);
    if (end)
        mk_response_end(req);
}

static void send_hint_and_echo(struct mk_request *req)
{
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    if (mk_response_interim(req, 103, &hint, 1) < 0)
        mk_response_error(req, 500);
    else
        mk_request_read(req, echo, NULL);
}

static void invite(struct mk_timer *timer)
{
    mk_response_interim(MK_CONTAINER_OF(timer, struct later, timer)->req, 100, NULL, 0);
}

/* Invites the client later, and twice. */
static void hold_continue(struct mk_request *req)
{
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_request_hold_continue(req);
    mk_request_read(req, echo, NULL);
    call_later(req, invite, 100);
    call_later(req, invite, 120);
}

/* ── the response ── */

static void send_date(struct mk_request *req)
{
    char storage[32];
    struct mk_buf date;
    mk_buf_init_fixed(&date, storage, sizeof(storage));
    mk_date_write(&date, (int64_t)get_number(req, 0));
    if (mk_response_set_date(req, mk_buf_str(&date)) < 0)
        mk_response_error(req, 500);
    else
        respond(req, MK_STR("dated\n"));
}

/* So many headers; without room for one of them 500. */
static void send_headers(struct mk_request *req)
{
    for (uint64_t n = get_number(req, 1); n; n--) {
        char name[32];
        int len = snprintf(name, sizeof(name), "X-%llu", (unsigned long long)n);
        struct mk_str copy = mk_arena_dup(mk_request_arena(req), mk_str(name, (size_t)len));
        if (mk_response_header(req, copy, MK_STR("v")) < 0) {
            mk_response_error(req, 500);
            return;
        }
    }
    mk_response_end(req);
}

/* Waits for itself so many milliseconds, and never responds. */
static void wait_in_vain(struct mk_request *req)
{
    if (mk_request_wait(req, (uint32_t)get_number(req, 100)) < 0)
        mk_response_error(req, 500);
}

/* Responds later than HandlerTimeout. */
static void wait_long(struct mk_request *req)
{
    mk_request_wait(req, 60000);
    call_later(req, respond_later, (uint32_t)get_number(req, 1000));
}

/* ── the request ── */

static void list_trailers(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    char storage[4096];
    struct mk_str name, value;
    struct mk_buf text;
    uint64_t bytes;
    (void)piece;
    (void)ctx;
    if (!end)
        return;
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    if (mk_request_body_length(req, &bytes))
        mk_buf_addf(&text, "%llu", (unsigned long long)bytes);
    for (unsigned i = 0; mk_request_trailer_at(req, i, &name, &value); i++)
        mk_buf_addf(&text, "|%.*s=%.*s", MK_STR_ARG(name), MK_STR_ARG(value));
    respond(req, mk_buf_str(&text));
}

static void read_trailers(struct mk_request *req)
{
    mk_request_keep_trailers(req);
    mk_request_read(req, list_trailers, NULL);
}

static void ignore_trailers(struct mk_request *req)
{
    mk_request_read(req, list_trailers, NULL);
}

static void take_notes(struct mk_request *req)
{
    mk_request_note(req, MK_STR("upstream"), MK_STR("192.0.2.7:80"));
    mk_request_note(req, MK_STR("upstream"), MK_STR("192.0.2.8:80"));
    mk_request_note(req, MK_STR("upstream_us"), MK_STR("1234"));
    mk_request_note(req, MK_STR("retries"), MK_STR("none"));
    mk_request_note(req, MK_STR("a_note"), MK_STR("two \"words\""));
    respond(req, MK_STR("noted\n"));
}

static void show_path(struct mk_request *req)
{
    char storage[512];
    struct mk_buf text;
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    mk_buf_addf(&text, "%.*s %.*s%s\n", MK_STR_ARG(mk_request_path(req)), MK_STR_ARG(mk_request_raw_path(req)),
                mk_request_has_encoded_slash(req) ? " encoded" : "");
    respond(req, mk_buf_str(&text));
}

/* ── hooks ── */

static const struct {
    struct mk_str path;
    void (*act)(struct mk_request *req);
} acts[] = {
    {MK_STR_INIT("/gateway/hints"), send_hints},       {MK_STR_INIT("/gateway/hold"), hold_continue},
    {MK_STR_INIT("/gateway/date"), send_date},         {MK_STR_INIT("/gateway/headers"), send_headers},
    {MK_STR_INIT("/gateway/vain"), wait_in_vain},      {MK_STR_INIT("/gateway/long"), wait_long},
    {MK_STR_INIT("/gateway/trailers"), read_trailers}, {MK_STR_INIT("/gateway/ignore"), ignore_trailers},
    {MK_STR_INIT("/gateway/notes"), take_notes},       {MK_STR_INIT("/gateway/hint_and_echo"), send_hint_and_echo},
};

static int act(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (!mk_str_eq(path, acts[i].path))
            continue;
        acts[i].act(req);
        return 0;
    }
    if (!mk_str_starts(path, MK_STR("/slash/")))
        return MK_DECLINED;
    show_path(req);
    return 0;
}

static int accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    (void)host;
    return mk_str_starts(path, MK_STR("/slash/"));
}

static const struct mk_path_hooks path_hooks = {.accepts_encoded_slash = accepts_encoded_slash};

MK_PLUGIN(gateway) = {
    MK_PLUGIN_HEAD("gateway", "1.0.0", "forwards nothing"),
    .on_content = act,
    .paths = &path_hooks,
};

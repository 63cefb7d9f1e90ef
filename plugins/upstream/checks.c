// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of servers: the request of one, what its response says, and which servers of a generation have one.
 */
#include "checks.h"

#include <monkey/base/dial.h>
#include <monkey/base/siphash.h>
#include <monkey/kit/fastcgi.h>
#include <monkey/kit/target.h>

#include <assert.h>
#include <errno.h>

enum {
    NAME_BYTES_MAX = 256,
    ARENA_BYTES_MAX = 65536,
    REQUEST_BYTES_MAX = 32768,
    REASON_BYTES = 800,
    REASON_PATH_MAX = 200,
    UPDATE_MS = 1000, /* how often servers of names that have come and gone are looked for */
};

/* ── requests ── */

#define USER_AGENT "monkey (check)"

static void write_http(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    mk_buf_addf(out, "%.*s %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: " USER_AGENT "\r\nConnection: close\r\n",
                MK_STR_ARG(conf->method), MK_STR_ARG(conf->what.path), MK_STR_ARG(host));
    for (uint32_t i = 0; i < conf->headers.n; i++)
        mk_buf_adds(out, conf->headers.lines[i]);
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── FastCGI ── */

/* Writes the variable of a line "NAME: VALUE\r\n", as HTTP_NAME. */
static void write_header(struct mk_str line, struct mk_buf *out)
{
    char name[NAME_BYTES_MAX];
    size_t len = (size_t)((const char *)memchr(line.p, ':', line.len) - line.p);
    size_t n = mk_cgi_header_variable(mk_str(line.p, len), name, sizeof(name));
    mk_fastcgi_add_pair(mk_str(name, n), mk_str_trim(mk_str(line.p + len + 1, line.len - len - 3)), out);
}

static struct mk_str get_name(struct mk_str host)
{
    const char *colon = memrchr(host.p, ':', host.len);
    bool has_port = colon && !memchr(colon, ']', host.len - (size_t)(colon - host.p));
    return has_port ? mk_str(host.p, (size_t)(colon - host.p)) : host;
}

static void write_fastcgi(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    struct mk_str uri = conf->what.path, query = uri, path = mk_str_split(&query, '?');
    const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("GATEWAY_INTERFACE"), MK_STR("CGI/1.1")},
        {MK_STR("SERVER_SOFTWARE"), MK_STR("monkey")},
        {MK_STR("SERVER_PROTOCOL"), MK_STR("HTTP/1.1")},
        {MK_STR("SERVER_NAME"), get_name(host)},
        {MK_STR("REQUEST_METHOD"), conf->method},
        {MK_STR("REQUEST_URI"), uri},
        {MK_STR("QUERY_STRING"), query},
        {MK_STR("SCRIPT_NAME"), path},
        {MK_STR("SCRIPT_FILENAME"), path},
        {MK_STR("REDIRECT_STATUS"), MK_STR("200")},
        {MK_STR("HTTP_HOST"), host},
        {MK_STR("HTTP_USER_AGENT"), MK_STR(USER_AGENT)},
    };
    size_t params = mk_fastcgi_begin(out, false);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        mk_fastcgi_add_pair(rows[i].name, rows[i].value, out);
    for (uint32_t i = 0; i < conf->headers.n; i++)
        write_header(conf->headers.lines[i], out);
    mk_fastcgi_end_params(out, params); /* fits: the limits of the keys are below that of a record */
    mk_fastcgi_add_header(out, MK_FASTCGI_STDIN, 0);
}

void check_request_write(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    if (conf->what.kind == CHECK_FASTCGI)
        write_fastcgi(conf, host, out);
    else
        write_http(conf, host, out);
}

/* ── results ── */

static bool has_text(struct mk_str body, struct mk_str text)
{
    return !text.len || (body.len && memmem(body.p, body.len, text.p, text.len));
}

enum check_result check_evaluate(const struct check_conf *conf, const struct mk_http_response *response,
                                 struct mk_buf *reason)
{
    if (response->err < 0)
        mk_buf_addf(reason, "%s", response->error);
    if (response->err < 0)
        return mk_dial_error_is_own(response->err) ? CHECK_NOT_MADE : CHECK_FAILED;
    if (!check_conf_asks(conf))
        return CHECK_PASSED;
    bool has_status = mk_status_set_has(&conf->statuses, response->status);
    if (has_status && has_text(response->body, conf->text))
        return CHECK_PASSED;
    struct mk_str path = conf->what.path;
    path.len = path.len < REASON_PATH_MAX ? path.len : REASON_PATH_MAX;
    mk_buf_addf(reason, "%.*s %.*s: ", MK_STR_ARG(conf->method), MK_STR_ARG(path));
    if (has_status)
        mk_buf_addf(reason, "the text was not found");
    else
        mk_buf_addf(reason, "%u", response->status);
    return CHECK_FAILED;
}

static void log_failure_to_check(struct check *check, const char *reason, uint64_t now_ms)
{
    unsigned missing;
    uint64_t hash = mk_log_limit_hash(0, reason);
    if (mk_log_limit_is_due(&check->limit, 1, hash, now_ms, &missing))
        mk_log_error("upstream %.*s: %.*s cannot be checked: %s", MK_STR_ARG(check->server->base.group),
                     MK_STR_ARG(check->server->base.address), reason);
}

/* Returns the ms until the next check. */
static uint32_t note_result(struct check *check, const struct mk_http_response *response, uint64_t now_ms)
{
    const struct check_conf *conf = check->conf;
    const struct health_rules rules = {(uint32_t)conf->down, (uint32_t)conf->up, conf->interval_ms};
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    enum check_result result = check_evaluate(conf, response, &reason);
    const char *text = mk_buf_cstr(&reason);
    if (result == CHECK_NOT_MADE) {
        log_failure_to_check(check, text, now_ms);
        return conf->interval_ms;
    }
    bool was_out = server_is_down(check->server) || server_is_ejected(check->server, now_ms);
    uint32_t wait =
        server_note_check(check->server, &rules, result == CHECK_FAILED ? text : NULL, check->worker, now_ms);
    if (was_out && !server_is_down(check->server) && !server_is_ejected(check->server, now_ms))
        group_note_up(check->server, now_ms);
    return wait;
}

/* ── running one ── */

static void on_response(struct mk_http_client *client, const struct mk_http_response *response)
{
    struct check *check = MK_CONTAINER_OF(client, struct check, exchange);
    struct mk_loop *loop = mk_worker_loop(check->worker);
    mk_timer_arm(loop, &check->timer, note_result(check, response, mk_loop_now_ms(loop)));
}

static void on_check_timer(struct mk_timer *timer)
{
    struct check *check = MK_CONTAINER_OF(timer, struct check, timer);
    const struct mk_http_client_options options = {
        .target = check->target,
        .transport = check->client->transport,
        .settings = check->client->settings,
        .worker = check->worker,
        .head = check->request,
        .codec = check->conf->what.kind == CHECK_FASTCGI ? &mk_fastcgi_codec : NULL,
        .codec_state = &check->fastcgi,
        .timeout_ms = check->conf->timeout_ms,
        .body_bytes_max = check->conf->text.len ? CHECK_BODY_BYTES_MAX : 0,
    };
    check->fastcgi = (struct mk_fastcgi_response){0};
    mk_http_client_start(&check->exchange, mk_worker_loop(check->worker), &options, on_response);
}

void check_start(struct check *check, struct mk_worker *worker)
{
    struct mk_loop *loop = mk_worker_loop(worker);
    uint64_t wait = server_begin_checks(check->server, check->id, mk_loop_now_ms(loop));
    uint32_t most = check->conf->interval_ms;
    check->worker = worker;
    mk_timer_arm(loop, &check->timer, wait < most ? (uint32_t)wait : most);
}

void check_stop(struct check *check)
{
    mk_timer_cancel(&check->timer);
    mk_http_client_cancel(&check->exchange);
    check->worker = NULL;
}

/* ── making one ── */

/* Writes host and port, as in a URL. */
static void write_authority(const struct check *check, struct mk_buf *out)
{
    const struct mk_dial_target *target = check->server->base.target;
    bool is_ipv6 = memchr(target->host.p, ':', target->host.len);
    unsigned port = check->conf->port ? (unsigned)check->conf->port : target->port;
    mk_buf_addf(out, is_ipv6 ? "[%.*s]" : "%.*s", MK_STR_ARG(target->host));
    if (port != UPSTREAM_PORT)
        mk_buf_addf(out, ":%u", port);
}

static int make_target(struct check *check, struct mk_str authority)
{
    const char *why;
    const struct mk_dial_target *target = check->server->base.target;
    check->target = target;
    if (!check->conf->port)
        return 0;
    assert(target->port);
    struct mk_str text = mk_arena_dup(&check->arena, authority);
    return text.p ? mk_dial_target_parse(&check->arena, text, UPSTREAM_PORT, &check->target, &why) : -ENOMEM;
}

static int make_request(struct check *check, struct mk_str authority)
{
    const struct check_conf *conf = check->conf;
    struct mk_str host = conf->host.len ? conf->host : check->target->port ? authority : MK_STR("localhost");
    struct mk_buf out;
    if (!check_conf_asks(conf))
        return 0;
    mk_buf_init(&out, REQUEST_BYTES_MAX);
    check_request_write(conf, host, &out);
    check->request = out.err ? MK_STR_NONE : mk_arena_dup(&check->arena, mk_buf_str(&out));
    mk_buf_release(&out);
    return check->request.p ? 0 : -ENOMEM;
}

/* What makes a check another one: its results do not continue those before. */
static int make_id(struct check *check)
{
    static const uint64_t no_key[2];
    const struct check_conf *conf = check->conf;
    const struct mk_str texts[] = {check->target->text, check->request, conf->text, conf->tls_name, conf->tls_ca};
    struct mk_buf out;
    mk_buf_init(&out, ARENA_BYTES_MAX);
    mk_buf_addf(&out, "%d %d %d %lld", conf->what.kind, conf->is_tls, conf->tls_verify, (long long)conf->port);
    mk_buf_add(&out, &conf->statuses, sizeof(conf->statuses));
    for (size_t i = 0; i < MK_COUNT_OF(texts); i++) {
        mk_buf_addf(&out, " %zu:", texts[i].len);
        mk_buf_adds(&out, texts[i]);
    }
    int err = out.err ? -ENOMEM : 0;
    check->id = mk_siphash(no_key, out.data, out.len) | 1; /* 0 means none */
    mk_buf_release(&out);
    return err;
}

static int prepare_check(struct check *check)
{
    MK_BUF_ON_STACK(authority, 512);
    write_authority(check, &authority);
    int err = make_target(check, mk_buf_str(&authority));
    if (err == 0)
        err = make_request(check, mk_buf_str(&authority));
    return err == 0 ? make_id(check) : err;
}

int check_make(const struct check_conf *conf, const struct check_client *client, struct server *server,
               struct check **ret)
{
    struct check *check = mk_account_alloc(NULL, sizeof(*check));
    if (!check)
        return -ENOMEM;
    *check = (struct check){.conf = conf, .client = client, .server = server};
    mk_arena_init(&check->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    mk_timer_init(&check->timer, on_check_timer);
    server_get(server);
    int err = prepare_check(check);
    if (err < 0)
        check_free(check);
    else
        *ret = check;
    return err;
}

void check_free(struct check *check)
{
    server_release(check->server);
    mk_arena_release(&check->arena);
    mk_account_free(NULL, check, sizeof(*check));
}

/* ── the servers of a group ── */

static struct check *find_check(const struct check_group *g, const struct server *server)
{
    struct check *check = g->first;
    while (check && check->server != server)
        check = check->next;
    return check;
}

/* Ends the checks of servers that the group has no more. */
static void drop_checks(struct check_group *g)
{
    for (struct check **at = &g->first; *at;) {
        struct check *check = *at;
        if (group_find_member(g->group, &check->server->base)) {
            at = &check->next;
            continue;
        }
        *at = check->next;
        check_stop(check);
        check_free(check);
    }
}

/* Makes checks of servers that have none, also of those that get no requests: a reload may change that. */
static int make_checks(struct check_group *g)
{
    const struct members *members = group_members(g->group);
    int err = 0;
    for (unsigned i = members->n; i-- > 0 && err == 0;) {
        struct server *server = members->items[i].server;
        struct check *check;
        if (find_check(g, server))
            continue;
        err = check_make(g->conf, &g->client, server, &check);
        if (err < 0)
            break;
        check->next = g->first;
        g->first = check;
    }
    return err;
}

/*
 * Makes the checks those of the servers that the group has now. Returns 0 or -ENOMEM: some servers have none. Under the
 * lock of names the list of servers stays.
 */
static int update_checks(struct check_group *g)
{
    names_lock();
    g->version = atomic_load(&g->group->version);
    drop_checks(g);
    int err = make_checks(g);
    g->version -= err < 0; /* another try */
    names_unlock();
    return err;
}

/* ── running those of a generation ── */

/* A server that was checked, and is not under this configuration, may get requests. */
static void end_checks(struct server *server, struct mk_worker *worker)
{
    uint64_t now = mk_loop_now_ms(mk_worker_loop(worker));
    bool was_down = server_is_down(server);
    server_end_checks(server, worker, now);
    if (was_down)
        group_note_up(server, now);
}

/* The list is valid until the turn of the loop ends. */
static void end_group(struct check_group *g, struct mk_worker *worker)
{
    const struct members *members = group_members(g->group);
    for (unsigned i = 0; i < members->n; i++)
        end_checks(members->items[i].server, worker);
}

static void update_group(struct check_group *g, struct mk_worker *worker)
{
    if (update_checks(g) < 0)
        mk_log_error("upstream %.*s: there is no memory to check all servers", MK_STR_ARG(g->group->conf->name));
    for (struct check *check = g->first; check; check = check->next)
        if (!check->worker)
            check_start(check, worker);
}

static void on_update_timer(struct mk_timer *timer)
{
    struct checks *checks = MK_CONTAINER_OF(timer, struct checks, timer);
    for (struct check_group *g = checks->first; g; g = g->next)
        if (check_conf_is_on(g->conf) && g->version != atomic_load(&g->group->version))
            update_group(g, checks->worker);
    mk_timer_arm(mk_worker_loop(checks->worker), &checks->timer, UPDATE_MS);
}

static void start_checks(struct runner_user *user, struct mk_worker *worker)
{
    struct checks *checks = MK_CONTAINER_OF(user, struct checks, user);
    checks->worker = worker;
    mk_timer_arm(mk_worker_loop(worker), &checks->timer, UPDATE_MS);
    for (struct check_group *g = checks->first; g; g = g->next)
        if (check_conf_is_on(g->conf))
            update_group(g, worker);
        else
            end_group(g, worker);
}

static void stop_checks(struct runner_user *user)
{
    struct checks *checks = MK_CONTAINER_OF(user, struct checks, user);
    mk_timer_cancel(&checks->timer);
    for (struct check_group *g = checks->first; g; g = g->next)
        for (struct check *check = g->first; check; check = check->next)
            check_stop(check);
}

/* ── making ── */

void checks_init(struct checks *checks)
{
    *checks = (struct checks){.user = {.start = start_checks, .stop = stop_checks}};
    mk_timer_init(&checks->timer, on_update_timer);
}

int checks_add(struct checks *checks, const struct mk_upstream_group *group, const struct check_conf *conf)
{
    struct check_group *g = mk_account_alloc(NULL, sizeof(*g));
    if (!g)
        return -ENOMEM;
    *g = (struct check_group){.next = checks->first, .group = group, .conf = conf};
    checks->first = g;
    return 0;
}

/* ── opening ── */

static int open_tls(struct check_group *g, struct mk_host *host)
{
    const struct check_conf *conf = g->conf;
    size_t is_tls = offsetof(struct check_conf, is_tls);
    const struct mk_target_tls_keys keys = {
        .name = is_tls,
        .server_name = conf->tls_name.len ? offsetof(struct check_conf, tls_name) : is_tls,
        .ca = offsetof(struct check_conf, tls_ca),
    };
    const struct mk_transport_client_conf settings = {
        .server_name = conf->tls_name.len ? conf->tls_name : g->group->conf->name,
        .ca_file = conf->tls_ca,
        .skip_verify = !conf->tls_verify,
    };
    return mk_target_open_tls(host, conf, &keys, &settings, &g->client.transport, &g->client.settings);
}

/* Finds servers without a port that CheckPort could take the place of. Returns 0 or -EINVAL. */
static int check_ports(const struct check_group *g, struct mk_host *host)
{
    const struct server_lines *lines = &g->group->conf->servers;
    int err = 0;
    for (uint32_t i = 0; i < lines->n && g->conf->port; i++) {
        if (lines->items[i].target->port || lines->items[i].is_srv)
            continue;
        mk_host_error(host, g->conf, offsetof(struct check_conf, port), 0,
                      "%.*s has no port that another one could take the place of", MK_STR_ARG(lines->items[i].name));
        err = -EINVAL;
    }
    return err;
}

static int open_group(struct check_group *g, struct mk_host *host)
{
    if (!check_conf_is_on(g->conf))
        return 0;
    int err = check_ports(g, host), opened = check_conf_has_tls(g->conf) ? open_tls(g, host) : 0;
    if (err == 0)
        err = opened;
    return err == 0 ? update_checks(g) : err;
}

int checks_open(struct checks *checks, struct mk_host *host)
{
    int err = 0;
    if (checks->is_open)
        return 0;
    checks->is_open = true;
    for (struct check_group *g = checks->first; g && err != -ENOMEM; g = g->next) {
        int r = open_group(g, host);
        err = r < 0 ? r : err;
    }
    return err;
}

void checks_free(struct checks *checks)
{
    while (checks->first) {
        struct check_group *g = checks->first;
        checks->first = g->next;
        while (g->first) {
            struct check *check = g->first;
            g->first = check->next;
            check_free(check);
        }
        if (g->client.transport)
            g->client.transport->client_close(g->client.settings);
        mk_account_free(NULL, g, sizeof(*g));
    }
}

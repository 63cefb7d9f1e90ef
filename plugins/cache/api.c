// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the requests of the API, and starts their calls.
 */
#include "calls.h"
#include "worker.h"

#include <monkey/base/accept.h>
#include <monkey/base/escape.h>
#include <monkey/kit/embedded.h>
#include <monkey/kit/json.h>
#include <monkey/kit/local_client.h>

/*
 * The decisions. Rules and logins have refused requests before this plugin is asked.
 */
static bool allows_admin(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule)
{
    unsigned missing;
    if (mk_request_user(req).p || mk_request_claims(req).p || mk_local_client_is_here(req))
        return true;
    if (mk_request_access(req) == 1 && mk_local_client_names_host(req))
        return true;
    if (mk_log_limit_is_due(&w->denied, 1, 0, mk_loop_now_ms(mk_request_loop(req)), &missing))
        mk_request_log(
            req, MK_LOG_WARN,
            "cache: Admin %.*s is not shown to this client: it has not logged in ([AUTH]), it is not on this machine, "
            "and no rule of [RULES] allows it, or it does not ask for a ServerName of the host",
            MK_STR_ARG(rule->admin));
    return false;
}

static struct mk_str strip_scheme(struct mk_str origin)
{
    const char *at = origin.len ? memmem(origin.p, origin.len, "://", 3) : NULL;
    return at ? mk_str(at + 3, origin.len - (size_t)(at + 3 - origin.p)) : MK_STR_NONE;
}

/*
 * Returns whether a request that changes something comes from the page itself or from a program: a page of another site
 * can make a browser send it, with its login, but the browser adds Sec-Fetch-Site or Origin.
 */
static bool is_same_site(struct mk_request *req)
{
    struct mk_str site = mk_request_header_by_name(req, MK_STR("Sec-Fetch-Site"));
    if (site.p)
        return mk_str_eq(site, MK_STR("same-origin")) || mk_str_eq(site, MK_STR("none"));
    struct mk_str origin = mk_request_header_by_name(req, MK_STR("Origin"));
    struct mk_str authority = strip_scheme(origin), host = mk_request_header(req, MK_HEADER_HOST);
    return !origin.p || (authority.len && mk_str_ieq(authority, host));
}

void access_check_host(struct mk_host *host, const struct cache_rule *rule)
{
    if (!mk_host_is_public(host) || mk_host_has_section(host, MK_STR("RULES")) ||
        mk_host_has_section(host, MK_STR("AUTH")))
        return;
    mk_host_warn(
        host, rule, offsetof(struct cache_rule, admin), 0,
        "only clients on this machine see this page, because neither [RULES] nor [AUTH] protects it: a section "
        "[RULES] with \"Match %.*s\", \"Network 10.0.0.0/8\" and \"Action allow\" would let those of a network "
        "see it",
        MK_STR_ARG(rule->admin));
}

static int add_headers(struct mk_request *req)
{
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("application/json"));
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
    return err == 0 ? mk_response_header_ref(req, MK_STR("X-Content-Type-Options"), MK_STR("nosniff")) : err;
}

void answer_json(struct mk_request *req, int status, const struct mk_buf *document)
{
    int err = document->err ? document->err : add_headers(req);
    if (err == 0 && status == 503)
        err = mk_response_header_ref(req, MK_STR("Retry-After"), MK_STR("1"));
    if (err == 0)
        err = mk_response_set_status(req, status);
    if (err == 0)
        err = mk_response_write(req, mk_buf_str(document));
    if (err < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

void answer_error(struct mk_request *req, int status, const char *sentence)
{
    MK_BUF_ON_STACK(document, 512);
    mk_json_open(&document, NULL, '{');
    mk_json_cstr(&document, "error", sentence);
    mk_json_close_line(&document);
    answer_json(req, status, &document);
}

extern const struct mk_embedded_file cache_files[]; /* of the page */

enum { BODY_BYTES_MAX = 1024 * 1024, ADD_PATHS_MAX = 10000, LIMIT_DEFAULT = 100, STREAMS_MAX = 16 };

static const char no_memory[] = "there is no memory for the paths";

/* ── parameters ── */

/* Decodes a value of a query or form, a path that is not percent-encoded further. Returns whether it is a path. */
static bool read_path(struct mk_str value, char out[PATH_BYTES])
{
    MK_UNINITIALIZED char raw[PATH_BYTES];
    ssize_t n = path_list_decode(value, raw, sizeof(raw));
    if (n <= 0)
        return false;
    MK_UNINITIALIZED MK_BUF_ON_STACK(encoded, 3 * PATH_BYTES);
    mk_path_encode(&encoded, mk_str(raw, (size_t)n));
    return !encoded.err && mk_path_normalize(mk_buf_str(&encoded), out, PATH_BYTES) > 0;
}

/* Returns NULL, or a sentence. */
typedef const char *(*set_fn)(struct call *c, struct mk_str value);

struct parameter {
    const char *name;
    set_fn set;
};

/* Sets the parameters of a query or form; others are errors. Returns NULL, or a sentence. */
static const char *set_parameters(struct call *c, const struct parameter *rows, struct mk_str text)
{
    struct path_list_pair pair;
    while (path_list_next_pair(&text, &pair)) {
        const struct parameter *row = rows;
        while (row->name && !mk_str_eq(mk_str_c(row->name), pair.name))
            row++;
        if (!row->name)
            return "a parameter is not known";
        const char *error = row->set(c, pair.value);
        if (error)
            return error;
    }
    return NULL;
}

/* ── entries ── */

static const char *set_prefix(struct call *c, struct mk_str value)
{
    ssize_t n = path_list_decode(value, c->path, sizeof(c->path));
    if (n < 0 || (n > 0 && c->path[0] != '/'))
        return "\"prefix\" is the beginning of a path";
    c->query.prefix = c->target.prefix = mk_str(c->path, (size_t)n);
    return NULL;
}

static const char *set_sort(struct call *c, struct mk_str value)
{
    for (unsigned i = 0; i < SCAN_SORTS; i++)
        if (mk_str_eq(value, mk_str_c(scan_sorts[i]))) {
            c->query.sort = i;
            return NULL;
        }
    return "\"sort\" is hits, bytes, age or name";
}

static const char *set_limit(struct call *c, struct mk_str value)
{
    uint64_t n;
    if (!mk_str_u64(value, SCAN_ROWS_MAX, &n) || !n)
        return "\"limit\" is a number from 1 to 1000";
    c->query.limit = (unsigned)n;
    return NULL;
}

/* The cursor is read when the order is known: it is kept in `sitemap`. */
static const char *set_after(struct call *c, struct mk_str value)
{
    return path_list_decode(value, c->sitemap, sizeof(c->sitemap)) > 0 ? NULL : "\"after\" is not one of an answer";
}

static const struct parameter entries_parameters[] = {
    {"prefix", set_prefix}, {"sort", set_sort}, {"limit", set_limit}, {"after", set_after}, {0}};

static void list_entries(struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    struct call *c = call_new(req, w);
    (void)rest;
    if (!c)
        return;
    c->query.limit = LIMIT_DEFAULT;
    c->query.prefix = MK_STR("");
    const char *error = set_parameters(c, entries_parameters, mk_request_query(req));
    if (!error && c->sitemap[0] && !scan_read_cursor(mk_str_c(c->sitemap), c->query.sort, &c->query.after))
        error = "\"after\" is not one of an answer";
    if (!error) {
        call_start(c, call_list_entries);
        return;
    }
    call_free(c);
    answer_error(req, 400, error);
}

/* ── reset ── */

static const char *set_reset_path(struct call *c, struct mk_str value)
{
    if (!read_path(value, c->path))
        return "\"path\" is a path, which begins with a slash";
    c->target.path = mk_str_c(c->path);
    return NULL;
}

static const char *set_reset_prefix(struct call *c, struct mk_str value)
{
    const char *error = set_prefix(c, value);
    return error || c->target.prefix.len ? error : "\"prefix\" is the beginning of a path; all=1 means all";
}

static const char *set_all(struct call *c, struct mk_str value)
{
    if (!mk_str_eq(value, MK_STR("1")))
        return "\"all\" is 1";
    c->target.prefix = MK_STR("/");
    return NULL;
}

static const struct parameter reset_parameters[] = {{"path", set_reset_path},
                                                    {"prefix", set_reset_prefix},
                                                    {"all", set_all},
                                                    {0}};

/* ── add ── */

static const char *add_line(struct call *c, struct mk_str path)
{
    mk_path_encode(&c->preload.list, path);
    mk_buf_addc(&c->preload.list, '\n');
    return c->preload.list.err ? no_memory : NULL;
}

static const char *set_add_path(struct call *c, struct mk_str value)
{
    MK_UNINITIALIZED char path[PATH_BYTES];
    if (!read_path(value, path))
        return "\"path\" is a path, which begins with a slash";
    return add_line(c, mk_str_c(path));
}

static const char *set_sitemap(struct call *c, struct mk_str value)
{
    return read_path(value, c->sitemap) ? NULL : "\"sitemap\" is the path of a file of this host";
}

static const char *set_folder(struct call *c, struct mk_str value)
{
    bool is_path = read_path(value, c->folder);
    return is_path && c->folder[strlen(c->folder) - 1] == '/' ? NULL
                                                              : "\"directory\" is a path with a slash at its end";
}

static const struct parameter add_parameters[] = {{"path", set_add_path},
                                                  {"sitemap", set_sitemap},
                                                  {"directory", set_folder},
                                                  {0}};

static bool is_list(struct mk_request *req, struct mk_str body)
{
    struct mk_str type = mk_request_header_by_name(req, MK_STR("Content-Type"));
    return mk_str_starts(type, MK_STR("text/plain")) || (body.len && (body.p[0] == '/' || body.p[0] == '#')) ||
           mk_str_starts(body, MK_STR("http://")) || mk_str_starts(body, MK_STR("https://"));
}

static bool has_too_many(struct mk_str list)
{
    struct mk_str entry;
    unsigned n = 0;
    while (n <= ADD_PATHS_MAX && path_list_next_line(&list, &entry))
        n++;
    return n > ADD_PATHS_MAX;
}

static const char *add_list(struct call *c, struct mk_str body)
{
    mk_buf_adds(&c->preload.list, body);
    return c->preload.list.err ? no_memory : NULL;
}

/* ── changes ── */

/* A change whose body is being read; in the arena of the request. */
struct change {
    struct cache_worker *worker;
    bool is_add;
    struct mk_str rest; /* the path after the name of the call; empty: none */
};

static const char *read_change(struct mk_request *req, struct call *c, const struct change *change, struct mk_str body)
{
    const struct parameter *rows = change->is_add ? add_parameters : reset_parameters;
    const char *error = set_parameters(c, rows, mk_request_query(req));
    if (!error && change->is_add && is_list(req, body))
        error = add_list(c, body);
    else if (!error)
        error = set_parameters(c, rows, body);
    if (error || !change->rest.len)
        return error;
    if (change->is_add)
        return add_line(c, change->rest);
    if (change->rest.len >= sizeof(c->path))
        return "the path is too long";
    memcpy(c->path, change->rest.p, change->rest.len + 1);
    c->target.path = mk_str(c->path, change->rest.len);
    return NULL;
}

/* Names that cannot be loaded are in the answer: those of a sitemap or folder are for clients that may GET it. */
static bool may_read(struct mk_request *req, const char *path)
{
    return !path[0] || mk_request_allows_path(req, mk_str_c(path)) == 1;
}

static const char *check_change(struct mk_request *req, const struct call *c, bool is_add, int *ret_status)
{
    *ret_status = 400;
    bool has_list = c->preload.list.len, has_sitemap = c->sitemap[0], has_folder = c->folder[0];
    if (is_add && !has_list && !has_sitemap && !has_folder)
        return "\"path\", \"sitemap\", \"directory\" or a list of paths is needed";
    if (is_add && has_list && has_sitemap)
        return "a sitemap and paths are two calls";
    if (!is_add && !c->target.path.len == !c->target.prefix.len)
        return "one of \"path\", \"prefix\" and \"all=1\" is needed";
    *ret_status = 403;
    if (!may_read(req, c->sitemap) || !may_read(req, c->folder))
        return "this client may not read the sitemap or directory";
    *ret_status = 413;
    return is_add && has_too_many(mk_buf_str(&c->preload.list)) ? "a call takes 10000 paths at most" : NULL;
}

static void start_change(struct mk_request *req, struct mk_str body, bool end, void *ctx)
{
    const struct change *change = ctx;
    int status = 400;
    (void)end;
    struct call *c = call_new(req, change->worker);
    if (!c)
        return;
    int err = preload_init(&c->preload, c->cache, c->host);
    c->has_preload = true;
    c->preload.cancelled = &c->cancelled;
    const char *error = err < 0 ? "no plugin of this host serves files" : read_change(req, c, change, body);
    if (!error)
        error = check_change(req, c, change->is_add, &status);
    if (error) {
        call_free(c);
        answer_error(req, error == no_memory ? 503 : status, error);
        return;
    }
    c->preload.refresh = !c->sitemap[0] && !c->folder[0];
    call_start(c, change->is_add ? call_add : call_reset);
}

static void read_change_body(struct mk_request *req, struct cache_worker *w, struct mk_str rest, bool is_add)
{
    if (!is_same_site(req)) {
        answer_error(req, 403, "the request comes from a page of another site");
        return;
    }
    struct change *change = mk_arena_alloc(mk_request_arena(req), sizeof(*change));
    if (!change) {
        mk_response_error(req, 503);
        return;
    }
    *change = (struct change){.worker = w, .is_add = is_add, .rest = rest};
    mk_request_collect(req, BODY_BYTES_MAX, start_change, change);
}

static void reset_entries(struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    read_change_body(req, w, rest, false);
}

static void add_entries(struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    read_change_body(req, w, rest, true);
}

/* ── reading ── */

static void send_stats(struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    static const struct mk_accept_offer offers[] = {
        {.type = MK_STR_INIT("application/json")},
        {.type = MK_STR_INIT("text/event-stream"), .only_by_name = true},
    };
    (void)rest;
    if (mk_accept_choose(mk_request_header_by_name(req, MK_STR("Accept")), offers, 2, 0) == 1) {
        mk_event_streams_answer(&w->streams, req, STREAMS_MAX);
        return;
    }
    MK_BUF_ON_STACK(document, 4096);
    mk_json_open(&document, NULL, '{');
    stats_write(w->cache, &document);
    mk_json_close_line(&document);
    answer_json(req, 200, &document);
}

static void send_to_page(struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    (void)w;
    (void)rest;
    mk_response_redirect_to_slash(req, 303);
}

/* ── paths ── */

struct route {
    struct mk_str name; /* below the path of the page */
    bool is_change;     /* POST only */
    bool has_rest;      /* a path may follow */
    void (*answer)(struct mk_request *req, struct cache_worker *w, struct mk_str rest);
};

static const struct route routes[] = {
    {MK_STR_INIT(""), false, false, send_to_page},         {MK_STR_INIT("/stats"), false, false, send_stats},
    {MK_STR_INIT("/entries"), false, false, list_entries}, {MK_STR_INIT("/reset"), true, true, reset_entries},
    {MK_STR_INIT("/add"), true, true, add_entries},
};

/* Finds the route of what follows the path of the page; `ret_rest`: the path after it, or nothing. */
static const struct route *find_route(struct mk_str name, struct mk_str *ret_rest)
{
    for (size_t i = 0; i < MK_COUNT_OF(routes); i++) {
        size_t n = routes[i].name.len;
        if (!mk_str_starts(name, routes[i].name) || (name.len > n && !(routes[i].has_rest && name.p[n] == '/')))
            continue;
        *ret_rest = mk_str_after(name, n);
        return &routes[i];
    }
    return NULL;
}

static void run_route(const struct route *route, struct mk_request *req, struct cache_worker *w, struct mk_str rest)
{
    enum mk_method method = mk_request_method(req);
    bool fits = route->is_change ? method == MK_POST : method == MK_GET || method == MK_HEAD;
    if (fits)
        route->answer(req, w, rest);
    else
        mk_response_method_not_allowed(req, route->is_change ? MK_STR("POST, OPTIONS") : MK_STR("GET, HEAD, OPTIONS"));
}

static void send_file(struct mk_request *req, const struct mk_embedded_file *file)
{
    enum mk_method method = mk_request_method(req);
    if (method == MK_GET || method == MK_HEAD)
        mk_embedded_send(req, file);
    else
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, OPTIONS"));
}

/* What a path of the plugin gets. */
struct target {
    const struct route *route; /* NULL: it is a file, or nothing */
    const struct mk_embedded_file *file;
    struct mk_str rest;
};

static struct target find_target(struct mk_str path, const struct cache_rule *rule)
{
    struct target target = {.rest = MK_STR_NONE};
    if (!mk_str_starts(path, rule->admin))
        return target;
    struct mk_str name = mk_str(path.p + rule->admin.len, path.len - rule->admin.len);
    target.route = find_route(name, &target.rest);
    if (name.len && name.p[0] == '/')
        target.file = mk_embedded_find(cache_files, mk_str_after(name, 1));
    return target;
}

bool api_has_path(struct mk_str path, const struct cache_rule *rule)
{
    struct target target = find_target(path, rule);
    return target.route || target.file;
}

int api_answer(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule)
{
    struct target target = find_target(mk_request_path(req), rule);
    if ((!target.route && !target.file) || !allows_admin(req, w, rule))
        return MK_DECLINED;
    if (target.route)
        run_route(target.route, req, w, target.rest);
    else
        send_file(req, target.file);
    return 0;
}

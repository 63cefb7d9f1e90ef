// SPDX-License-Identifier: Apache-2.0
#include "static.h"

#include <monkey/base/log_limit.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* ── error pages ── */

enum { ERROR_PAGE_BYTES_MAX = 64 * 1024 };

enum { STATUS_MIN = 400, STATUS_MAX = 599 };

const struct mk_conf_key mk__static_error_pages_keys[] = {
    MK_CONF_KEY_PATTERN(struct error_pages_conf, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.json`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    {0},
};

/* ── loading ── */

static struct error_page *add_page(struct error_pages *all, int status, size_t file_bytes)
{
    assert(status >= STATUS_MIN && status <= STATUS_MAX);
    struct error_page *page = mk_account_alloc(NULL, sizeof(*page) + file_bytes);
    if (!page)
        return NULL;
    *page = (struct error_page){.next = all->pages, .status = status, .bytes = sizeof(*page) + file_bytes};
    all->pages = page;
    return page;
}

static struct error_page *find_page(const struct error_pages *all, int status)
{
    struct error_page *page = all->pages;
    while (page && page->status != status)
        page = page->next;
    return page;
}

/* Reads a file of at most ERROR_PAGE_BYTES_MAX bytes. Returns 0 or -errno. */
static int read_page_file(const struct static_site *site, struct error_pages *all, int status, struct mk_str name)
{
    struct stat st;
    int fd = mk__static_open_beneath(site->root_fd, name.p + 1), err = 0;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (!S_ISREG(st.st_mode))
        err = -EINVAL;
    else if (st.st_size > ERROR_PAGE_BYTES_MAX)
        err = -EFBIG;
    struct error_page *page = err ? NULL : add_page(all, status, (size_t)st.st_size);
    ssize_t n = page ? pread(fd, page->file, (size_t)st.st_size, 0) : 0;
    close(fd);
    if (!page)
        return err ? err : -ENOMEM;
    page->name = name;
    page->body = mk_str(page->file, n > 0 ? (size_t)n : 0);
    return n < 0 ? -EIO : 0;
}

/* Returns whether a text looks like the name of a page, which begins with a slash here. */
static bool is_name(struct mk_str text)
{
    const char *dot = text.len ? memrchr(text.p, '.', text.len) : NULL;
    struct mk_str extension = dot ? mk_str(dot, text.len - (size_t)(dot - text.p)) : MK_STR_NONE;
    return !memchr(text.p, ' ', text.len) &&
           (mk_str_ieq(extension, MK_STR(".html")) || mk_str_ieq(extension, MK_STR(".htm")));
}

/* Returns where a text has what looks like a variable of another server, $name, {name} or %{NAME}; NULL: nowhere. */
static MK_COLD const char *find_variable(struct mk_str text)
{
    for (size_t i = 0; i + 2 < text.len; i++) {
        struct mk_str name = mk_str_after(text, i + 1);
        bool is_lower = name.p[0] >= 'a' && name.p[0] <= 'z';
        if ((text.p[i] == '$' && (is_lower || name.p[0] == '{')) || (text.p[i] == '%' && name.p[0] == '{'))
            return text.p + i;
        if (text.p[i] == '{' && is_lower && mk_str_is_name(mk_str_until(name, "}"), "._") &&
            memchr(name.p, '}', name.len))
            return text.p + i;
    }
    return NULL;
}

/*
 * Returns the name of the page, if all words before it are statuses: nginx has several in a line. Empty: the text is
 * what is sent.
 */
static MK_COLD struct mk_str find_name_behind_statuses(struct mk_str text)
{
    struct mk_str word = mk_str_until(text, " ");
    uint64_t status;
    bool had_status = false;
    while (word.len < text.len && mk_str_u64(word, STATUS_MAX, &status) && status >= STATUS_MIN) {
        had_status = true;
        text = mk_str_after(text, word.len + 1);
        word = mk_str_until(text, " ");
    }
    bool is_page = had_status && word.len == text.len && (mk_str_starts(word, MK_STR("/")) || is_name(word));
    return is_page ? word : MK_STR("");
}

static int load_page(const struct static_site *site, struct error_pages *all, const struct mk_conf_pair *pair,
                     uint64_t *ret_status)
{
    if (!mk_str_u64(pair->key, STATUS_MAX, ret_status) || *ret_status < STATUS_MIN)
        return -ERANGE;
    if (find_page(all, (int)*ret_status))
        return -EEXIST;
    if (mk_str_starts(pair->value, MK_STR("/")) && site->root_fd < 0)
        return site->host->root.len ? -ESTALE : -ENOENT;
    if (mk_str_starts(pair->value, MK_STR("/")))
        return read_page_file(site, all, (int)*ret_status, pair->value);
    if (is_name(pair->value))
        return -ENOTSUP;
    if (find_name_behind_statuses(pair->value).len)
        return -E2BIG;
    struct error_page *page = add_page(all, (int)*ret_status, 0);
    if (!page)
        return -ENOMEM;
    page->body = pair->value;
    return 0;
}

/* A section that is loaded: one of the host, or one in monkey.conf (`shared`). */
struct error_source {
    struct mk_host *host;
    const struct static_site *site;
    const struct error_pages_conf *conf;
    bool shared;
};

/* Reports that a file cannot be read. Of pages for all hosts, not every document root must have all. */
static int report_unreadable(const struct error_source *from, uint32_t nth, int err)
{
    struct mk_str page = from->conf->pairs.items[nth].value;
    if (!from->site->host->root.len && from->shared)
        return 0;
    if (from->shared)
        mk_host_warn(from->host, from->conf, 0, nth,
                     "cannot read the page %.*s below the document root %s: %s; this host has the server's page",
                     MK_STR_ARG(page), from->site->host->root.p, strerror(-err));
    else
        mk_host_error(from->host, from->conf, 0, nth, "cannot read the page %.*s below the document root: %s",
                      MK_STR_ARG(page), from->site->host->root.len ? strerror(-err) : "the host has none");
    return from->shared ? 0 : -EINVAL;
}

static void report_statuses(const struct error_source *from, uint32_t nth, unsigned status)
{
    struct mk_str name = find_name_behind_statuses(from->conf->pairs.items[nth].value);
    mk_host_error(from->host, from->conf, 0, nth,
                  "a page is for one status: write a line for each, such as \"%u %s%.*s\"", status,
                  mk_str_starts(name, MK_STR("/")) ? "" : "/", MK_STR_ARG(name));
}

/* Reports the result of load_page(). Returns 0 (there is no error), -EINVAL or -ENOMEM. */
static int report_page(const struct error_source *from, uint32_t nth, int err, unsigned status)
{
    const struct mk_conf_pair *pair = &from->conf->pairs.items[nth];
    if (err == -ENOMEM || err == -ESTALE) /* the document root cannot be opened, which was reported */
        return err == -ENOMEM ? err : 0;
    if (err == -ERANGE)
        mk_host_error(from->host, from->conf, 0, nth, "\"%.*s\" is not a status from %d to %d", MK_STR_ARG(pair->key),
                      STATUS_MIN, STATUS_MAX);
    else if (err == -EEXIST)
        mk_host_error(from->host, from->conf, 0, nth, "the status %u has a page already", status);
    else if (err == -ENOTSUP)
        mk_host_error(from->host, from->conf, 0, nth, "a page is a path below the document root: write /%.*s",
                      MK_STR_ARG(pair->value));
    else if (err == -E2BIG)
        report_statuses(from, nth, status);
    else if (err < 0)
        return report_unreadable(from, nth, err);
    else if (!mk_str_starts(pair->value, MK_STR("/")) && find_variable(pair->value))
        mk_host_warn(from->host, from->conf, 0, nth, "a page has no variables: \"%.*s\" is sent as it is",
                     MK_STR_ARG(mk_str_until(mk_str_c(find_variable(pair->value)), " <\"")));
    else if (status == 414 || status == 431)
        mk_host_warn(from->host, from->conf, 0, nth,
                     "a request whose head is too long has no host: clients get the server's page for %u", status);
    return err < 0 ? -EINVAL : 0;
}

static int load_pages(const struct error_source *from, struct error_pages *all)
{
    int result = 0;
    for (uint32_t i = 0; i < from->conf->pairs.n && result != -ENOMEM; i++) {
        uint64_t status = 0;
        int err = load_page(from->site, all, &from->conf->pairs.items[i], &status);
        err = report_page(from, i, err, (unsigned)status);
        result = err < 0 ? err : result;
    }
    return result;
}

int mk__static_errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section)
{
    assert(!site->errors);
    const struct error_pages_conf *shared = mk_host_server_conf(host, section);
    struct error_source from = {.host = host, .site = site, .conf = mk_host_conf(host, section)};
    struct error_pages **last = &site->errors;
    int result = 0;
    for (; from.conf && result != -ENOMEM; from.conf = mk_host_conf_next(host, section, from.conf)) {
        struct error_pages *all = *last = mk_account_alloc(NULL, sizeof(*all));
        if (!all)
            return -ENOMEM;
        *all = (struct error_pages){.conf = from.conf};
        last = &all->next;
        from.shared |= from.conf == shared;
        int err = load_pages(&from, all);
        result = err < 0 ? err : result;
    }
    int err = mk_host_check_patterns(host, section, offsetof(struct error_pages_conf, match));
    return err < 0 && result != -ENOMEM ? err : result;
}

/* Returns whether a page is the source of a program, by its name and by the file that it is. */
static bool is_source(struct static_site *site, struct mk_str page)
{
    if (site->sources == SOURCES_NONE || site->root_fd < 0 || !mk_str_starts(page, MK_STR("/")))
        return false;
    int fd = mk__static_open_beneath(site->root_fd, page.p + 1);
    bool is_source = sources_have_name(site, page.p + 1) || (fd >= 0 && mk_host_is_source_fd(site->owner, fd));
    if (fd >= 0)
        close(fd);
    return is_source;
}

int mk__static_errors_check(struct mk_host *host, struct static_site *site)
{
    int result = 0;
    for (const struct error_pages *all = site->errors; all; all = all->next)
        for (uint32_t i = 0; i < all->conf->pairs.n; i++) {
            struct mk_str page = all->conf->pairs.items[i].value;
            if (!is_source(site, page))
                continue;
            mk_host_error(host, all->conf, 0, i, "the page %.*s is a program of another plugin, and never sent",
                          MK_STR_ARG(page));
            result = -EINVAL;
        }
    return result;
}

static void free_pages(struct error_pages *all)
{
    for (struct error_page *page = all->pages, *next; page; page = next) {
        next = page->next;
        mk_account_free(NULL, page, page->bytes);
    }
}

void mk__static_errors_free(struct static_site *site)
{
    for (struct error_pages *all = site->errors, *next; all; all = next) {
        next = all->next;
        free_pages(all);
        mk_account_free(NULL, all, sizeof(*all));
    }
    site->errors = NULL;
}

/* ── responses ── */

void mk__static_errors_apply(struct mk_request *req, const struct static_site *site,
                             const struct mk_conf_section *section)
{
    const void *conf; /* NULL, too, if a pattern fails on the path: the server's page is sent */
    int status = mk_response_get_status(req);
    if (status < STATUS_MIN || !mk_response_is_default_error(req))
        return;
    mk_host_conf_match(mk_request_host_conf(req), section, offsetof(struct error_pages_conf, match),
                       mk_request_path(req), &conf);
    const struct error_pages *all = conf ? site->errors : NULL;
    while (all && all->conf != conf)
        all = all->next;
    const struct error_page *page = all ? find_page(all, status) : NULL;
    if (!page)
        return;
    bool html = mk_str_starts(page->body, MK_STR("<"));
    struct mk_str type = html ? MK_STR("text/html; charset=utf-8") : MK_STR("text/plain; charset=utf-8");
    if (page->name.p)
        type = mk_request_mime(req, page->name);
    if (mk_response_replace(req, type, page->body) < 0)
        mk_request_log(req, MK_LOG_WARN, "static: no memory for the page of status %d", status);
}

/* ── why no file is sent ── */

enum { SHOWN_BYTES_MAX = 200 };

/* Lines of all workers together. */
static struct {
    pthread_mutex_t lock;
    struct mk_log_limit_row rows[MK_REASON_COUNT];
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    int err;
    enum mk_reason reason;
} reasons[] = {
    {EACCES, MK_REASON_PERMISSION},
    {EPERM, MK_REASON_PERMISSION},
    {ELOOP, MK_REASON_LINK},
    {EXDEV, MK_REASON_LINK_OUTSIDE},
    {ENAMETOOLONG, MK_REASON_NAME_TOO_LONG},
    {ENXIO, MK_REASON_NO_FILE},
    {ENOENT, MK_REASON_MISSING},
    {ENOTDIR, MK_REASON_MISSING},
    {EISDIR, MK_REASON_NO_INDEX},
};

void mk__static_reasons_note(struct mk_request *req, const struct static_site *site, int err)
{
    enum mk_reason reason = MK_REASON_NONE;
    for (size_t i = 0; i < MK_COUNT_OF(reasons); i++)
        if (reasons[i].err == err)
            reason = reasons[i].reason;
    if (reason == MK_REASON_LINK && site->settings->symlinks != SYMLINKS_OFF)
        reason = MK_REASON_LINK_CIRCLE;
    mk_request_set_reason(req, reason);
}

/* Does not wait for a disk. `path` ends with a slash. */
static bool is_folder(struct static_site *site, struct mk_str path)
{
    struct stat st;
    int fd = mk__static_open_name(site, path.len > 1 ? path.p + 1 : ".", true);
    bool folder = fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    if (fd >= 0)
        close(fd);
    return folder;
}

/* Returns whether a path without an index is that of a folder which exists, as far as no disk is needed to see that. */
static bool names_folder(struct static_site *site, struct mk_str path)
{
    struct static_location at = {site, path, MK_STR_NONE};
    mk__static_alias_find(&at);
    return mk_str_ends(at.path, MK_STR("/")) && at.site->root_fd >= 0 && is_folder(at.site, at.path);
}

static bool is_due(enum mk_reason reason, uint64_t now_ms, unsigned *ret_missing)
{
    pthread_mutex_lock(&lines.lock);
    bool due = mk_log_limit_is_due(&lines.rows[reason], 1, 0, now_ms, ret_missing);
    pthread_mutex_unlock(&lines.lock);
    return due;
}

void mk__static_reasons_log(struct mk_request *req, struct static_site *site)
{
    unsigned missing;
    if (site && mk_request_reason(req) == MK_REASON_MISSING && names_folder(site, mk_request_path(req)))
        mk_request_set_reason(req, MK_REASON_NO_INDEX);
    enum mk_reason reason = mk_request_reason(req);
    const struct mk_reason_info *info = mk_reason_info(reason);
    bool hinted = reason == MK_REASON_NO_INDEX && site->hints_at_listing; /* see below */
    if (!info->advice || hinted || !is_due(reason, mk_loop_now_ms(mk_request_loop(req)), &missing))
        return;
    struct mk_str path = mk_str_truncate(mk_request_target(req), SHOWN_BYTES_MAX);
    mk_request_log(req, MK_LOG_INFO, "%u for %.*s: %s; %u such lines before were not written", info->status,
                   MK_STR_ARG(path), info->advice, missing);
}

/* ── a folder without an index, in one-shot mode ── */

static _Atomic bool given; /* by this process */

void mk__static_listing_hint_give(struct mk_request *req, struct static_site *site)
{
    struct mk_str path = mk_request_path(req);
    bool named = path.len && path.p[0] == '/' && path.p[path.len - 1] == '/';
    if (!site->hints_at_listing || given || !named || mk_response_get_status(req) != 404 || !is_folder(site, path))
        return;
    if (!atomic_exchange(&given, true))
        mk_log_info("404 for %.*s: the folder has no index.html; `monkey DIR --list` lists such folders",
                    MK_STR_ARG(path));
}

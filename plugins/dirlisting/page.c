// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the listing as an HTML page, by a theme. Here are the fields of its templates.
 */
#include "listing.h"
#include "send.h"
#include "template.h"

#include <errno.h>

extern const struct mk_plugin mk_plugin_dirlisting;

enum { VALUE_BYTES = 1024, CRUMBS_MAX = 32, THEMES_BYTES_MAX = 64 * 1024 * 1024, ERROR_BYTES = 1024 };

/* The themes that the sections of all hosts of a generation name. */
struct page_themes {
    struct mk_arena arena;
    struct theme *first;
};

/* What fields are about; the `ctx` of template_write(). */
struct page_values {
    const struct listing_view *view;
    const struct listing_entry *entry; /* NULL in header and footer */
    struct mk_buf text;                /* the value of a field, in `storage` */
    char storage[VALUE_BYTES];
};

/* Empties the storage of values. */
static struct mk_buf *begin_value(struct page_values *v)
{
    mk_buf_init_fixed(&v->text, v->storage, sizeof(v->storage));
    return &v->text;
}

/* ── fields of the page ── */

/* Defines a function of the table whose value follows from the values `v`. */
#define VALUE(name, value) \
    static struct mk_str get_##name(void *ctx) \
    { \
        struct page_values *v = ctx; \
        return value; \
    }

VALUE(path, v->view->path)
VALUE(theme_path, v->view->rule->theme_url)

static struct mk_str get_html_title(void *ctx)
{
    struct page_values *v = ctx;
    struct mk_str path = v->view->path, intro = MK_STR("Index of ");
    size_t max = sizeof(v->storage) - intro.len;
    struct mk_buf *out = begin_value(v);
    mk_buf_adds(out, intro);
    mk_buf_adds(out, mk_str(path.p, path.len < max ? path.len : max));
    return mk_buf_str(out);
}

/* Returns the last part of a path without its slash: "/" for "/". */
static struct mk_str find_last_part(struct mk_str path)
{
    size_t len = path.len > 1 ? path.len - 1 : path.len;
    const char *slash = len ? memrchr(path.p, '/', len) : NULL;
    size_t from = slash && len > 1 ? (size_t)(slash - path.p) + 1 : 0;
    return mk_str(path.p + from, len - from);
}

static struct mk_str get_folder_name(void *ctx)
{
    struct page_values *v = ctx;
    struct mk_str host = v->view->path.len > 1 ? MK_STR_NONE : mk_request_host(v->view->req);
    return host.len ? host : find_last_part(v->view->path);
}

static struct mk_str get_parent_url(void *ctx)
{
    return get_path(ctx).len > 1 ? MK_STR("../") : MK_STR("");
}

/* ── order ── */

VALUE(sort, mk_str_c(order_sorts[v->view->sort]))
VALUE(order, mk_str_c(order_directions[v->view->descending]))

/* A column is sorted in its usual order first: names from A, the largest and the newest first. */
static struct mk_str make_sort_url(void *ctx, int sort)
{
    struct page_values *v = ctx;
    const struct listing_view *view = v->view;
    bool descending = (int)view->sort == sort ? !view->descending : sort != LISTING_BY_NAME;
    struct mk_buf *out = begin_value(v);
    if (view->is_complete)
        mk_buf_addf(out, "?sort=%s&order=%s", order_sorts[sort], order_directions[descending]);
    return mk_buf_str(out);
}

/* A value of aria-sort. */
static struct mk_str get_column_order(void *ctx, int sort)
{
    const struct listing_view *view = ((struct page_values *)ctx)->view;
    if (!view->is_complete || (int)view->sort != sort)
        return MK_STR("none");
    return view->descending ? MK_STR("descending") : MK_STR("ascending");
}

/* ── what the folder has ── */

static void add_count(struct mk_buf *out, uint64_t n, const char *one, const char *several)
{
    char number[TEXT_BYTES];
    if (!n)
        return;
    if (out->len)
        mk_buf_adds(out, MK_STR(", "));
    mk_buf_adds(out, text_number(number, n));
    mk_buf_addf(out, " %s", n == 1 ? one : several);
}

static struct mk_str get_summary(void *ctx)
{
    struct page_values *v = ctx;
    const struct listing_view *view = v->view;
    char size[TEXT_BYTES];
    struct mk_buf *out = begin_value(v);
    if (!view->is_complete)
        return MK_STR("");
    add_count(out, view->folders, "folder", "folders");
    add_count(out, view->files, "file", "files");
    if (view->files) {
        mk_buf_adds(out, MK_STR(", "));
        mk_buf_adds(out, text_size(size, view->bytes));
    }
    return out->len ? mk_buf_str(out) : MK_STR("0 files");
}

VALUE(count, v->view->is_complete ? text_number(v->storage, (uint64_t)v->view->files + v->view->folders) : MK_STR(""))
VALUE(is_empty, v->view->is_complete && !v->view->files && !v->view->folders ? MK_STR("1") : MK_STR(""))
VALUE(unsorted, v->view->is_complete
                    ? MK_STR("")
                    : MK_STR("This folder is too large to be sorted. Its entries are in the order of the file system."))
VALUE(readme_name, v->view->readme_name)
VALUE(readme, v->view->readme)

/* ── links ── */

static struct mk_str has_breadcrumbs(void *ctx)
{
    (void)ctx;
    return MK_STR("1");
}

static void write_crumb(struct mk_buf *out, struct mk_str name, unsigned levels)
{
    if (!levels)
        mk_buf_adds(out, MK_STR("<li><span aria-current=\"page\">"));
    else
        mk_buf_adds(out, MK_STR("<li><a href=\""));
    for (unsigned i = 0; i < levels; i++)
        mk_buf_adds(out, MK_STR("../"));
    mk_buf_adds(out, levels ? MK_STR("\">") : MK_STR(""));
    text_html(out, name, false);
    mk_buf_adds(out, levels ? MK_STR("</a></li>") : MK_STR("</span></li>"));
}

static unsigned count_slashes(struct mk_str path)
{
    unsigned n = 0;
    for (size_t i = 0; i < path.len; i++)
        n += path.p[i] == '/';
    return n;
}

/* Writes a link for each folder of the path; of a very deep path the first and the last ones. */
static void write_breadcrumbs(struct mk_buf *out, void *ctx)
{
    const struct listing_view *view = ((struct page_values *)ctx)->view;
    struct mk_str path = view->path, host = mk_request_host(view->req);
    unsigned levels = count_slashes(path);
    write_crumb(out, host.len ? host : MK_STR("/"), levels ? levels - 1 : 0);
    for (size_t from = 1, to; from < path.len; from = to + 1) {
        const char *slash = memchr(path.p + from, '/', path.len - from);
        to = slash ? (size_t)(slash - path.p) : path.len;
        levels--;
        if (levels == CRUMBS_MAX)
            mk_buf_adds(out, MK_STR("<li>&hellip;</li>"));
        else if (levels < CRUMBS_MAX)
            write_crumb(out, mk_str(path.p + from, to - from), levels - 1);
    }
}

static struct mk_str has_archives(void *ctx)
{
    return ((struct page_values *)ctx)->view->rule->archive_names.n ? MK_STR("1") : MK_STR("");
}

/* The names have been checked to be kinds of archives, which need no escaping. */
static void write_archives(struct mk_buf *out, void *ctx)
{
    const struct mk_conf_list *names = &((struct page_values *)ctx)->view->rule->archive_names;
    for (uint32_t i = 0; i < names->n; i++) {
        struct mk_str name = names->items[i];
        mk_buf_addf(out, "%s<a href=\"?archive=%.*s\" download>%.*s</a>", i ? " " : "", MK_STR_ARG(name),
                    MK_STR_ARG(name));
    }
}

/* ── fields of an entry ── */

static struct mk_str get_target_name(void *ctx)
{
    const struct listing_entry *entry = ((struct page_values *)ctx)->entry;
    return mk_str(entry->name, entry->name_len);
}

static struct mk_str get_target_url(void *ctx)
{
    struct page_values *v = ctx;
    struct mk_buf *out = begin_value(v);
    text_uri(out, get_target_name(ctx));
    if (v->entry->is_dir)
        mk_buf_addc(out, '/');
    return mk_buf_str(out);
}

VALUE(target_type, v->entry->is_dir ? MK_STR("folder") : kind_of(get_target_name(v)))
VALUE(target_is_folder, v->entry->is_dir ? MK_STR("1") : MK_STR(""))
VALUE(target_is_link, v->entry->is_link ? MK_STR("1") : MK_STR(""))
VALUE(target_time, text_time(v->storage, v->entry->mtime_seconds))
VALUE(target_iso_time, text_iso_time(v->storage, v->entry->mtime_seconds))
VALUE(target_size, v->entry->is_dir ? MK_STR("") : text_size(v->storage, v->entry->bytes))
VALUE(target_exact_size, v->entry->is_dir ? MK_STR("") : text_exact_size(v->storage, v->entry->bytes))

static struct mk_str get_target_title(void *ctx)
{
    struct mk_buf *out = begin_value(ctx);
    mk_buf_adds(out, get_target_name(ctx));
    mk_buf_adds(out, MK_STR(" ("));
    mk_buf_adds(out, get_target_type(ctx));
    mk_buf_addc(out, ')');
    return mk_buf_str(out);
}

static struct mk_str get_target_mtime(void *ctx)
{
    struct page_values *v = ctx;
    mk_buf_addf(begin_value(v), "%lld", (long long)v->entry->mtime_seconds);
    return mk_buf_str(&v->text);
}

static struct mk_str get_target_bytes(void *ctx)
{
    struct page_values *v = ctx;
    mk_buf_addf(begin_value(v), "%llu", (unsigned long long)v->entry->bytes);
    return mk_buf_str(&v->text);
}

static const struct template_field page_fields[] = {
    {"html_title", TEMPLATE_TEXT, .text = get_html_title},
    {"theme_path", TEMPLATE_URL, .text = get_theme_path},
    {"path", TEMPLATE_TEXT, .text = get_path},
    {"folder_name", TEMPLATE_TEXT, .text = get_folder_name},
    {"breadcrumbs", TEMPLATE_HTML, .text = has_breadcrumbs, .block = write_breadcrumbs},
    {"parent_url", TEMPLATE_URL, .text = get_parent_url},
    {"sort", TEMPLATE_TEXT, .text = get_sort},
    {"order", TEMPLATE_TEXT, .text = get_order},
    {"name_sort_url", TEMPLATE_URL, .text_of = make_sort_url, .arg = LISTING_BY_NAME},
    {"size_sort_url", TEMPLATE_URL, .text_of = make_sort_url, .arg = LISTING_BY_SIZE},
    {"date_sort_url", TEMPLATE_URL, .text_of = make_sort_url, .arg = LISTING_BY_DATE},
    {"name_order", TEMPLATE_TEXT, .text_of = get_column_order, .arg = LISTING_BY_NAME},
    {"size_order", TEMPLATE_TEXT, .text_of = get_column_order, .arg = LISTING_BY_SIZE},
    {"date_order", TEMPLATE_TEXT, .text_of = get_column_order, .arg = LISTING_BY_DATE},
    {"summary", TEMPLATE_TEXT, .text = get_summary},
    {"count", TEMPLATE_TEXT, .text = get_count},
    {"is_empty", TEMPLATE_TEXT, .text = get_is_empty},
    {"unsorted", TEMPLATE_TEXT, .text = get_unsorted},
    {"archives", TEMPLATE_HTML, .text = has_archives, .block = write_archives},
    {"readme_name", TEMPLATE_TEXT, .text = get_readme_name},
    {"readme", TEMPLATE_LINES, .text = get_readme},
    {"target_title", TEMPLATE_TEXT, true, .text = get_target_title},
    {"target_url", TEMPLATE_URL, true, .text = get_target_url},
    {"target_name", TEMPLATE_TEXT, true, .text = get_target_name},
    {"target_type", TEMPLATE_TEXT, true, .text = get_target_type},
    {"target_is_folder", TEMPLATE_TEXT, true, .text = get_target_is_folder},
    {"target_is_link", TEMPLATE_TEXT, true, .text = get_target_is_link},
    {"target_time", TEMPLATE_TEXT, true, .text = get_target_time},
    {"target_iso_time", TEMPLATE_TEXT, true, .text = get_target_iso_time},
    {"target_mtime", TEMPLATE_TEXT, true, .text = get_target_mtime},
    {"target_size", TEMPLATE_TEXT, true, .text = get_target_size},
    {"target_exact_size", TEMPLATE_TEXT, true, .text = get_target_exact_size},
    {"target_bytes", TEMPLATE_TEXT, true, .text = get_target_bytes},
    {0},
};

/* ── the format ── */

static struct theme *find_theme(const struct page_themes *themes, struct mk_str name)
{
    struct theme *theme = themes->first;
    while (theme && !mk_str_eq(theme->name, name))
        theme = theme->next;
    return theme;
}

/* All themes of the host's sections have been loaded. */
static const struct theme *get_theme(const struct listing_view *view)
{
    return find_theme(view->host->pages, view->rule->theme);
}

static int add_page_headers(struct mk_request *req, const struct listing_view *view)
{
    int err = mk_response_header_ref(req, MK_STR("Content-Security-Policy"), get_theme(view)->policy);
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("X-Content-Type-Options"), MK_STR("nosniff"));
    return err;
}

static void begin_page(struct mk_buf *out, const struct listing_view *view)
{
    struct page_values values = {.view = view};
    template_write(&get_theme(view)->header, out, &values);
}

static void write_entry(struct mk_buf *out, const struct listing_view *view, const struct listing_entry *entry,
                        uint32_t n)
{
    MK_UNINITIALIZED struct page_values values;
    (void)n;
    values.view = view;
    values.entry = entry;
    template_write(&get_theme(view)->entry, out, &values);
}

static void end_page(struct mk_buf *out, const struct listing_view *view)
{
    struct page_values values = {.view = view};
    template_write(&get_theme(view)->footer, out, &values);
}

const struct listing_format page_format = {
    .type = MK_STR_INIT("text/html; charset=utf-8"),
    .add_headers = add_page_headers,
    .begin = begin_page,
    .entry = write_entry,
    .end = end_page,
};

/* ── hosts ── */

static int load_theme(struct mk_host *host, struct page_themes *themes, const struct listing_rule *rule)
{
    if (find_theme(themes, rule->theme))
        return 0;
    struct theme *theme = mk_arena_alloc(&themes->arena, sizeof(*theme));
    if (!theme)
        return -ENOMEM;
    MK_BUF_ON_STACK(error, ERROR_BYTES);
    int err = theme_load(theme, rule->theme, page_fields, &themes->arena, &error);
    if (err == -EINVAL)
        mk_host_error(host, rule, offsetof(struct listing_rule, theme), 0, "%s", mk_buf_cstr(&error));
    if (err < 0)
        return err;
    theme->next = themes->first;
    themes->first = theme;
    return 0;
}

int page_start_host(struct mk_host *host, struct listing_host *listing_host)
{
    const struct mk_conf_section *section = &rules_sections[RULES_RULE];
    struct page_themes *themes = mk_generation_state(mk_host_generation(host), &mk_plugin_dirlisting);
    int err = 0;
    listing_host->pages = themes;
    const struct listing_rule *rule = mk_host_conf(host, section);
    for (; rule && err != -ENOMEM; rule = mk_host_conf_next(host, section, rule)) {
        int one = rule->enabled ? load_theme(host, themes, rule) : 0;
        err = one < 0 ? one : err;
    }
    return err;
}

/* ── generations ── */

int page_start_generation(struct mk_generation *g, void **ret_state)
{
    struct page_themes *themes = *ret_state = mk_account_alloc(NULL, sizeof(*themes));
    (void)g;
    if (!themes)
        return -ENOMEM;
    themes->first = NULL;
    mk_arena_init(&themes->arena, NULL, THEMES_BYTES_MAX, NULL, 0);
    return 0;
}

void page_stop_generation(struct mk_generation *g, void *state)
{
    struct page_themes *themes = state;
    (void)g;
    mk_arena_release(&themes->arena);
    mk_account_free(NULL, themes, sizeof(*themes));
}

// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1024 * 1024, CONFIG_BYTES_MAX = 256 * 1024 * 1024 /* with thousands of hosts */ };

/* Prints a text, and releases it. */
static int print_buffer(FILE *to, struct mk_buf *text)
{
    bool good = text->err == 0 && (!text->len || fwrite(text->data, 1, text->len, to) == text->len);
    mk_buf_release(text);
    return good && fflush(to) == 0 ? EXIT_OK : EXIT_RUN;
}

int print_problems(const struct mk_server *server, int code)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_problems(server, &text);
    print_buffer(stderr, &text);
    return code;
}

/* ── sections of the manual: their headings are "## `[TLS]`" ── */

static const struct mk_str heading = MK_STR("\n## ");
static const struct mk_str section_heading = MK_STR("\n## `[");

/* Returns where `what` begins in `text` at or after `from`, or the length of the text. */
static size_t find_text(struct mk_str text, size_t from, struct mk_str what)
{
    const char *at = from < text.len ? memmem(text.p + from, text.len - from, what.p, what.len) : NULL;
    return at ? (size_t)(at - text.p) : text.len;
}

static struct mk_str get_name(struct mk_str text, size_t start)
{
    size_t at = start + section_heading.len;
    return mk_str(text.p + at, find_text(text, at, MK_STR("]")) - at);
}

static struct mk_str remove_brackets(const char *name)
{
    struct mk_str s = mk_str_c(name);
    return s.len > 2 && s.p[0] == '[' && s.p[s.len - 1] == ']' ? mk_str(s.p + 1, s.len - 2) : s;
}

static int add_section(struct mk_str manual, const char *name, struct mk_buf *out)
{
    struct mk_str wanted = remove_brackets(name);
    bool found = false;
    for (size_t at = find_text(manual, 0, section_heading); at < manual.len;
         at = find_text(manual, at + 1, section_heading)) {
        size_t end = find_text(manual, at + 1, heading);
        if (!mk_str_ieq(get_name(manual, at), wanted))
            continue;
        mk_buf_add(out, manual.p + at + !found, end - at - !found); /* an empty line between two sections */
        found = true;
    }
    return out->err ? out->err : found ? 0 : -ENOENT;
}

static void list_sections(struct mk_str manual, struct mk_buf *out)
{
    struct mk_str last = MK_STR_NONE;
    for (size_t at = find_text(manual, 0, section_heading); at < manual.len;
         at = find_text(manual, at + 1, section_heading)) {
        struct mk_str name = get_name(manual, at);
        if (last.p)
            mk_buf_addc(out, ' ');
        mk_buf_adds(out, name);
        last = name;
    }
}

/* Returns the section whose name is most similar, if at most a third of the letters differ; `.p` NULL: there is none.
 */
static struct mk_str find_nearest_section(struct mk_str manual, struct mk_str wanted)
{
    struct mk_str best = MK_STR_NONE;
    unsigned least = wanted.len < 6 ? 2 : (unsigned)wanted.len / 3 + 1;
    for (size_t at = find_text(manual, 0, section_heading); at < manual.len;
         at = find_text(manual, at + 1, section_heading)) {
        struct mk_str name = get_name(manual, at);
        unsigned distance = mk_str_distance(wanted, name);
        if (distance < least) {
            best = name;
            least = distance;
        }
    }
    return best;
}

static void report_unknown_section(struct mk_str manual, const char *name, struct mk_buf *list)
{
    struct mk_str near = find_nearest_section(manual, remove_brackets(name));
    list_sections(manual, list);
    if (near.p)
        fprintf(stderr, "monkey: the manual has no section [%s]; did you mean [%.*s]? It has %s\n", name,
                MK_STR_ARG(near), mk_buf_cstr(list));
    else
        fprintf(stderr, "monkey: the manual has no section [%s]; it has %s\n", name, mk_buf_cstr(list));
}

/* Prints one section of the manual. */
static int print_section(const char *name)
{
    struct mk_buf manual, text;
    mk_buf_init(&manual, TEXT_BYTES_MAX);
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_reference(&manual);
    int err = add_section(mk_buf_str(&manual), name, &text);
    if (err == -ENOENT)
        report_unknown_section(mk_buf_str(&manual), name, &text);
    mk_buf_release(&manual);
    if (err == 0)
        return print_buffer(stdout, &text);
    mk_buf_release(&text);
    return err == -ENOENT ? EXIT_OPTIONS : EXIT_RUN;
}

int print_info(const struct options *o)
{
    struct mk_buf text;
    if (o->action == ACTION_REFERENCE && o->name)
        return print_section(o->name);
    mk_buf_init(&text, TEXT_BYTES_MAX);
    if (o->action == ACTION_REFERENCE)
        mk_reference(&text);
    else if (o->action == ACTION_BUILD)
        mk_build_info(&text);
    else
        mk_buf_addf(&text, "monkey %s\n", mk_version());
    return print_buffer(stdout, &text);
}

int print_config(const struct mk_server *server, const char *host)
{
    struct mk_buf text;
    mk_buf_init(&text, CONFIG_BYTES_MAX);
    if (!host) {
        mk_server_show(server, &text);
    } else if (mk_server_show_host(server, mk_str_c(host), &text) == -ENOENT) {
        fprintf(stderr, "monkey: no host serves the name %s, and no file in sites has this name\n", host);
        mk_buf_release(&text);
        return EXIT_OPTIONS;
    }
    return print_buffer(stdout, &text);
}

static const char one_file_head[] = "# Made by monkey --one-file. Comments are left out, variables and @INCLUDE are "
                                    "resolved, and paths are absolute.\n";
static const char load_order[] = "plugins.load has no place in one file: a plugin is loaded for its sections";

int print_one_file(const struct mk_server *server, const char *dir)
{
    struct mk_buf text;
    char path[PATH_MAX];
    mk_buf_init(&text, CONFIG_BYTES_MAX);
    mk_buf_adds(&text, mk_str_c(one_file_head));
    snprintf(path, sizeof(path), "%s/plugins.load", dir ? dir : "");
    if (dir && access(path, F_OK) == 0) {
        mk_buf_addf(&text, "# %s.\n", load_order);
        fprintf(stderr, "monkey: %s\n", load_order);
    }
    mk_buf_addc(&text, '\n');
    mk_server_show_file(server, &text);
    return print_buffer(stdout, &text);
}

/*
 * ── monkey -t ──
 *
 * A child process under the configured User finds the problems of that user, and returns its part of the report in
 * shared memory.
 */

struct report {
    struct mk_buf text;
    struct mk_problem_counts counts;
};

/* The child's part of the report, in shared memory. */
struct user_report {
    struct mk_problem_counts counts;
    bool refused; /* and not only warned of */
    size_t len;
    char text[TEXT_BYTES_MAX];
};

struct user_check {
    const struct mk_server *server; /* as loaded by root */
    const struct options *o;
    struct user_report *found;
};

static unsigned get_format_flags(const struct options *o)
{
    return o->json ? MK_PROBLEMS_JSON : 0;
}

/* Runs in the child as the user. Problems that root has too are left out. */
static int check_as_user(void *ctx)
{
    const struct user_check *check = ctx;
    struct user_report *found = check->found;
    struct mk_server *server = mk_server_new();
    struct mk_buf text;
    char listen_text[256];
    if (server)
        mk_server_check_after_root(server);
    int err = server ? config_load(server, check->o, listen_text, sizeof(listen_text)) : -ENOMEM;
    if (err == -ENOMEM)
        return 0;
    found->refused = err < 0;
    mk_buf_init_fixed(&text, found->text, sizeof(found->text));
    found->counts =
        mk_server_list_problems(server, check->server, get_format_flags(check->o) | MK_PROBLEMS_AS_WARNINGS, &text);
    found->len = text.err ? 0 : text.len;
    return 0;
}

static void add_user_report(struct report *r, const struct user_report *found, const struct options *o,
                            const char *user)
{
    if (!found->counts.errors && !found->counts.warnings)
        return;
    if (o->json && r->text.len)
        mk_buf_adds(&r->text, MK_STR(",\n"));
    mk_buf_add(&r->text, found->text, found->len);
    if (!o->json)
        mk_buf_addf(&r->text,
                    found->refused
                        ? "monkey: the user %s has these problems: a start as root works, but a reload runs "
                          "as that user and would be refused\n"
                        : "monkey: the user %s has these warnings: a start as root has not, but a reload runs "
                          "as that user\n",
                    user);
    r->counts.errors += found->counts.errors;
    r->counts.warnings += found->counts.warnings;
}

static void add_user_problems(struct report *r, const struct mk_server *server, const struct options *o)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    if (!privileges_must_drop(&process))
        return;
    struct user_check check = {server, o, NULL};
    check.found = mmap(NULL, sizeof(*check.found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (check.found == MAP_FAILED)
        return;
    privileges_run_as_user(&process, check_as_user, &check);
    add_user_report(r, check.found, o, process.user);
    munmap(check.found, sizeof(*check.found));
}

static int print_json(struct report *r)
{
    struct mk_buf all;
    mk_buf_init(&all, 2 * TEXT_BYTES_MAX);
    mk_buf_addf(&all, "{\"problems\":[");
    mk_buf_adds(&all, mk_buf_str(&r->text));
    mk_buf_addf(&all, "],\n\"summary\":{\"valid\":%s,\"errors\":%u,\"warnings\":%u}}\n",
                r->counts.errors ? "false" : "true", r->counts.errors, r->counts.warnings);
    int code = r->text.err ? EXIT_RUN : print_buffer(stdout, &all);
    mk_buf_release(&all);
    return code;
}

static int print_text(struct report *r)
{
    if (!r->counts.errors && r->counts.warnings)
        mk_buf_addf(&r->text, "monkey: the configuration is fine, with %u warning%s\n", r->counts.warnings,
                    r->counts.warnings == 1 ? "" : "s");
    else if (!r->counts.errors)
        mk_buf_addf(&r->text, "monkey: the configuration is fine\n");
    return print_buffer(stderr, &r->text);
}

int report_test(struct mk_server *server, const struct options *o, int loaded)
{
    struct report r = {.counts = {0, 0}};
    mk_server_on_check(server, own_server_is, (void *)(uintptr_t)o);
    int checked = loaded == -ENOMEM ? loaded : mk_server_check(server);
    if (loaded == -ENOMEM || checked == -ENOMEM)
        return EXIT_RUN;
    mk_buf_init(&r.text, TEXT_BYTES_MAX);
    r.counts = mk_server_list_problems(server, NULL, get_format_flags(o), &r.text);
    if ((loaded < 0 || checked < 0) && !r.counts.errors)
        r.counts.errors = 1; /* which had no place in the list */
    add_user_problems(&r, server, o);
    int code = o->json ? print_json(&r) : print_text(&r);
    mk_buf_release(&r.text);
    return r.counts.errors ? EXIT_CONFIG : code;
}

void report_as_user(const struct mk_server *server, const struct options *o)
{
    struct options text_options = *o;
    struct report r = {.counts = {0, 0}};
    text_options.json = false;
    mk_buf_init(&r.text, TEXT_BYTES_MAX);
    add_user_problems(&r, server, &text_options);
    print_buffer(stderr, &r.text);
    mk_buf_release(&r.text);
}

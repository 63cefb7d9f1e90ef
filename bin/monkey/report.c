// SPDX-License-Identifier: Apache-2.0
/*
 * The report of `monkey -t` (report.h). A child process under the configured User finds the problems of that user, and
 * returns its part of the report in shared memory.
 */
#include "report.h"

#include "config.h"
#include "own_server.h"
#include "privileges.h"
#include "print.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { TEXT_BYTES_MAX = 1024 * 1024 };

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

/* ── printing ── */

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

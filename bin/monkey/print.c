// SPDX-License-Identifier: Apache-2.0
/*
 * Prints what the program knows (print.h).
 */
#include "print.h"

#include <errno.h>

enum { TEXT_BYTES_MAX = 1024 * 1024 };

int print_buffer(FILE *to, struct mk_buf *text)
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
    mk_buf_init(&text, TEXT_BYTES_MAX);
    if (!host) {
        mk_server_show(server, &text);
    } else if (mk_server_show_host(server, mk_str_c(host), &text) == -ENOENT) {
        fprintf(stderr, "monkey: no host serves the name %s, and no file in sites has this name\n", host);
        mk_buf_release(&text);
        return EXIT_OPTIONS;
    }
    return print_buffer(stdout, &text);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Searches the text of plugins.load for lines of plugins (server/plugins/load_order.h).
 */
#include "server/plugins/load_order.h"

/* A line `Load a b`, or with a # in front. */
struct load_line {
    struct mk_str names;
    bool commented;
};

static bool parse_line(struct mk_str line, struct load_line *ret)
{
    line.len -= line.len && line.p[line.len - 1] == '\r';
    line = mk_str_trim(line);
    ret->commented = line.len && line.p[0] == '#';
    if (ret->commented)
        line = mk_str_after(line, 1);
    bool loads = mk_str_ieq(mk_str_next_word(&line), MK_STR("Load"));
    ret->names = mk_str_trim(line);
    return loads;
}

/* Returns the number of the line that has the plugin in a comment, alone; 0: there is none. */
static unsigned find_commented(struct mk_str text, const char *name)
{
    struct load_line line;
    for (unsigned n = 1; text.len; n++)
        if (parse_line(mk_str_split(&text, '\n'), &line) && line.commented && mk_str_ieq(line.names, mk_str_c(name)))
            return n;
    return 0;
}

/* Returns the number of the line that loads the plugin; 0: there is none. */
static unsigned find_loaded(struct mk_str text, const char *name)
{
    struct load_line line;
    for (unsigned n = 1; text.len; n++) {
        bool loads = parse_line(mk_str_split(&text, '\n'), &line) && !line.commented;
        while (loads && line.names.len)
            if (mk_str_ieq(mk_str_next_word(&line.names), mk_str_c(name)))
                return n;
    }
    return 0;
}

static int find_in_order(const char *const *order, const char *name)
{
    for (int i = 0; order[i]; i++)
        if (strcmp(order[i], name) == 0)
            return i;
    return -1;
}

void mk__load_order_describe(struct mk_str text, const char *const *order, const char *name, struct mk_buf *out)
{
    unsigned commented = find_commented(text, name), line = 0;
    int i = find_in_order(order, name);
    if (commented)
        mk_buf_addf(out, ": remove the # in line %u", commented);
    while (!commented && !line && i-- > 0)
        line = find_loaded(text, order[i]);
    if (line)
        mk_buf_addf(out, ", below \"Load %s\" in line %u", order[i], line);
}

#define AFTER_FILES \
    "a file is sent in place of what this plugin would respond, and methods other than GET and HEAD get 405"

static const struct mk__load_order_fault faults[] = {
    {"static", "dirlisting", "folders with an index would be listed, because static could not serve it", true},
    {"respond", "static", AFTER_FILES, false},
    {"proxy", "static", AFTER_FILES, false},
    {"cgi", "static", AFTER_FILES, false},
    {"fastcgi", "static", AFTER_FILES, false},
};

const struct mk__load_order_fault *mk__load_order_check(const char *name, const char *before)
{
    for (size_t i = 0; i < MK_COUNT_OF(faults); i++)
        if (strcmp(faults[i].name, name) == 0 && strcmp(faults[i].before, before) == 0)
            return &faults[i];
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Headers of responses: what lines change them in which order, and which lines are refused. */
#include "plugin_host.h"

extern const struct mk_plugin mk_plugin_headers;

/* Content with headers of its own; the path decides about the status. */
static int send_content(struct mk_request *req)
{
    if (mk_str_eq(mk_request_path(req), MK_STR("/missing")))
        mk_response_set_status(req, 404);
    mk_response_header_ref(req, MK_STR("X-Own"), MK_STR("1"));
    mk_response_header_ref(req, MK_STR("X-Own"), MK_STR("2"));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("private"));
    mk_response_end(req);
    return 0;
}

static const struct mk_plugin content = {.name = "content", .on_content = send_content};

/* The values of a header in the order of the lines, each with a blank behind it. */
static const char *join_values(const char *response, const char *name)
{
    static char values[512];
    struct mk_buf out;
    size_t n = strlen(name);
    mk_buf_init_fixed(&out, values, sizeof(values));
    for (const char *line = strstr(response, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (!strncasecmp(line + 2, name, n) && line[2 + n] == ':')
            mk_buf_addf(&out, "%.*s ", (int)strcspn(line + n + 4, "\r"), line + n + 4);
    mk_buf_cstr(&out);
    return values;
}

struct change_row {
    const char *sections, *path, *header, *values;
};

#define RULE(lines) "[HEADERS]\n" lines
#define OWN "X-Own"

static const struct change_row changes[] = {
    {RULE("Add X-Own 3\n"), "/", OWN, "1 2 3 "},
    {RULE("Set X-Own 3\n"), "/", OWN, "3 "},
    {RULE("Set x-own 3\n"), "/", OWN, "3 "},
    {RULE("Remove X-Own\n"), "/", OWN, ""},
    {RULE("Set X-New a b, c\n"), "/", "X-New", "a b, c "},
    {RULE("Add X-New a\nAdd X-New b\n"), "/", "X-New", "a b "},
    {RULE("Set X-New a\nSet X-New b\n"), "/", "X-New", "b "},
    /* within a section: Remove, Expires, Set, Add, whatever the order of the lines */
    {RULE("Add X-Own 4\nSet X-Own 3\nRemove X-Own\n"), "/", OWN, "3 4 "},
    {RULE("Set Cache-Control no-cache\nExpires 60s\n"), "/", "Cache-Control", "no-cache "},
    {RULE("Expires 60s\n"), "/", "Cache-Control", "max-age=60 "},
    {RULE("Expires 60s\n"), "/", "Expires", "Sun, 06 Nov 1994 08:50:37 GMT "},
    /* paths and statuses */
    {RULE("Match /a\nSet X-Own 3\n"), "/a/b", OWN, "3 "},
    {RULE("Match /a\nSet X-Own 3\n"), "/b", OWN, "1 2 "},
#ifdef MK_REGEX
    {RULE("Match ~^/[0-9]+$\nSet X-Own 3\n"), "/12", OWN, "3 "},
#endif
    {RULE("Set X-Own 3\n"), "/missing", OWN, "1 2 "},
    {RULE("Set X-Own 3\nOnErrors On\n"), "/missing", OWN, "3 "},
    {RULE("Expires 60s\n"), "/missing", "Cache-Control", "private "},
    /* the first section that sets or removes a header decides about it; several may add it */
    {RULE("Set X-Own 3\n") RULE("Set X-Own 4\n"), "/", OWN, "3 "},
    {RULE("Set X-Own 3\n") RULE("Add X-Own 4\n"), "/", OWN, "3 "},
    {RULE("Set X-Own 3\n") RULE("Remove X-Own\n"), "/", OWN, "3 "},
    {RULE("Remove X-Own\n") RULE("Set X-Own 4\n"), "/", OWN, ""},
    {RULE("Add X-Own 3\n") RULE("Add X-Own 4\n"), "/", OWN, "1 2 3 4 "},
    {RULE("Add X-Own 3\n") RULE("Set X-Own 4\n"), "/", OWN, "1 2 3 "},
    {RULE("Match /a\nSet X-Own 3\n") RULE("Set X-Own 4\n"), "/b", OWN, "4 "},
    {RULE("Set X-Own 3\n") RULE("Set X-Own 4\nOnErrors On\n"), "/missing", OWN, "4 "},
    {RULE("Expires 60s\n") RULE("Set Cache-Control no-cache\n"), "/", "Cache-Control", "max-age=60 "},
    {RULE("Set Expires 0\n") RULE("Expires 60s\n"), "/", "Expires", "0 "},
    {RULE("Set Expires 0\n") RULE("Expires 60s\n"), "/", "Cache-Control", "max-age=60 "},
};

/* `before`, `after`: sections for other paths. */
static void check_changes(const char *before, const char *after)
{
    for (size_t i = 0; i < COUNT(changes); i++) {
        const struct change_row *row = &changes[i];
        char text[4096];
        snprintf(text, sizeof(text), "%s%s%s", before, row->sections, after);
        char request[128];
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", row->path);
        open_plugin_host(text, &mk_plugin_headers, &content, NULL);
        const char *values = join_values(ask_plugin_host(request), row->header);
        if (strcmp(values, row->values) != 0)
            fail_msg("%s for %s: %s is \"%s\", not \"%s\"", row->sections, row->path, row->header, values, row->values);
        close_plugin_host();
    }
}

TEST(changes)
{
    check_changes("", "");
}

/* Where there are many, those that match are found by the texts that their paths begin with. */
TEST(changes_among_many)
{
    char others[2048];
    struct mk_buf out;
    mk_buf_init_fixed(&out, others, sizeof(others));
    for (int i = 0; i < 20; i++)
        mk_buf_addf(&out, RULE("Match %s%d\nSet X-Own 9\nSet X-New 9\nSet Expires 9\n"), i % 2 ? "/other" : "=/a/b/",
                    i);
    mk_buf_cstr(&out);
    check_changes(others, "");
    check_changes("", others);
}

TEST(refused_lines)
{
    static const struct {
        const char *lines, *sentence;
    } rows[] = {
        {RULE("Set X-Own: 3"), "a blank separates name and value, not a colon: write \"Set X-Own 3\""},
        {RULE("Set \"X-Own: 3\""), "a blank separates name and value, not a colon: write \"Set X-Own 3\""},
        {RULE("Remove X-Own: 3"), "a blank separates name and value, not a colon: write \"Remove X-Own\""},
        {RULE("Set X-Own"), "a header needs a name and a value"},
        {RULE("Remove X-Own a"), "Remove takes a name only"},
        {RULE("Set X(Own 3"), "the name of a header has letters, digits and dashes only"},
        {RULE("Set Content-Length 3"), "only the server sets this header"},
        {RULE("Set Connection close"), "only the server sets this header"},
        {RULE("Add Upgrade h2c"), "only the server sets this header"},
        {RULE("Set TE trailers"), "only the server sets this header"},
        {RULE("Add X-Own 3 always"), "\"always\" becomes part of the value: leave it out, and write OnErrors On"},
        {RULE("Expires 0s"), "default:4:13: error: "},
        {RULE("Match a/b\nAdd X 1"), "default:4:11: error: "},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refusal(rows[i].lines, rows[i].sentence);
}

TEST_FILE(make_plugin_host, mk_test_folder_remove)

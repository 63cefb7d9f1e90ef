// SPDX-License-Identifier: Apache-2.0
/*
 * Makes an example of the names that a pattern matches (<monkey/kit/source.h>).
 */
#include <monkey/kit/source.h>

#include <stdio.h>

/* Names of scripts, of which one fits a regular expression for those of a language. */
static const char *const scripts[] = {
    "/index.php", "/index.phtml", "/index.php5", "/index.py",  "/index.pl",   "/index.cgi",
    "/index.rb",  "/index.lua",   "/index.sh",   "/index.jsp", "/index.fcgi", "/index.asp",
};

static bool find_script(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    for (size_t i = 0; i < MK_COUNT_OF(scripts); i++)
        if (mk_pattern_match(pattern, mk_str_c(scripts[i])) > 0) {
            snprintf(ret, MK_SOURCE_EXAMPLE_BYTES, "%s", scripts[i]);
            return true;
        }
    return false;
}

/* Replaces the wildcards of a glob; one without a slash is that of a name. */
static bool fill_glob(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    size_t n = 0;
    if (pattern->text.len + 2 > MK_SOURCE_EXAMPLE_BYTES)
        return false;
    if (pattern->kind == MK_PATTERN_NAME)
        ret[n++] = '/';
    for (size_t i = 0; i < pattern->text.len; i++)
        ret[n++] = pattern->text.p[i] == '*' || pattern->text.p[i] == '?' ? 'x' : pattern->text.p[i];
    ret[n] = '\0';
    return mk_pattern_match(pattern, mk_str(ret, n)) > 0;
}

bool mk_source_make_example(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    struct mk_str text = mk_str_strip_end(pattern->text, "/");
    if (mk_source_is_whole_site(pattern))
        return false;
    if (pattern->kind == MK_PATTERN_EXACT || pattern->kind == MK_PATTERN_PREFIX)
        return snprintf(ret, MK_SOURCE_EXAMPLE_BYTES, "%.*s%s", MK_STR_ARG(text),
                        pattern->kind == MK_PATTERN_PREFIX ? "/x" : "") < MK_SOURCE_EXAMPLE_BYTES;
    return find_script(pattern, ret) || (pattern->kind != MK_PATTERN_REGEX && fill_glob(pattern, ret));
}

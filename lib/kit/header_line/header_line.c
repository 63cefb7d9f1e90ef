// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and checks lines with headers of responses (<monkey/kit/header_line.h>).
 */
#include <monkey/kit/header_line.h>

#include <monkey/kit/variables.h>

#include <errno.h>

/* Returns whether a colon follows the name, as on the wire: "X-Foo: bar", in quotes or not. */
static bool has_colon(struct mk_str text, struct mk_str first)
{
    size_t n = mk_str_until(text, ":").len;
    return n < first.len && mk_header_is_plain(mk_str(text.p, n));
}

static int report_colon(struct mk_buf *error, struct mk_str text, const char *key, bool has_value)
{
    size_t n = mk_str_until(text, ":").len;
    struct mk_str value = mk_str_trim(mk_str(text.p + n + 1, text.len - n - 1));
    int shown = !has_value ? 0 : value.len > 80 ? 80 : (int)value.len;
    mk_buf_addf(error, "a blank separates name and value, not a colon: write \"%s %.*s%s%.*s\"", key, (int)n, text.p,
                shown ? " " : "", shown, value.p);
    return -EINVAL;
}

/* Those that would need an option of Connection (RFC 9110 section 7.6.1). */
static bool is_of_connection(struct mk_str name)
{
    static const struct mk_str names[] = {MK_STR_INIT("Proxy-Connection"), MK_STR_INIT("TE"), MK_STR_INIT("Upgrade")};
    return mk_str_is_any(name, names, MK_COUNT_OF(names));
}

int mk_header_line_parse(const struct mk_conf_value *value, const char *key, bool has_value,
                         struct mk_header_field *ret, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = value->text, name = value->n ? value->words[0] : MK_STR("");
    if (has_colon(text, name))
        return report_colon(error, text, key, has_value);
    if (!mk_header_is_plain(name))
        return mk_conf_fail(error, "the name of a header has letters, digits and dashes only");
    if (mk_response_header_reserved(name) || is_of_connection(name))
        return mk_conf_fail(error, "only the server sets this header");
    if (has_value && value->n < 2)
        return mk_conf_fail(error, "a header needs a name and a value");
    if (!has_value && value->n != 1) {
        mk_buf_addf(error, "%s takes a name only", key);
        return -EINVAL;
    }
    ret->name = mk_arena_dup(arena, name);
    ret->value = mk_arena_dup(arena, mk_str_trim(mk_str_after(text, name.len)));
    return ret->name.p && ret->value.p ? 0 : -ENOMEM;
}

static bool is_in_single_quotes(struct mk_str value)
{
    return value.len > 1 && value.p[0] == '\'' && value.p[value.len - 1] == '\'';
}

void mk_header_line_check(const struct mk_conf_check *check, size_t offset, unsigned nth, struct mk_str value)
{
    struct mk_variable_found found;
    if (is_in_single_quotes(value))
        mk_conf_warn_nth(check, offset, nth, "quotes are double: %.*s is sent with its single ones", MK_STR_ARG(value));
    if (mk_variable_find_in(value, &found))
        mk_conf_warn_nth(check, offset, nth, "headers of responses have no variables: \"%.*s\" is sent as it is%s%s",
                         MK_STR_ARG(found.text),
                         found.here ? "; RequestSet of [PROXY] and formats of logs have it as $" : "",
                         found.here ? found.here : "");
}

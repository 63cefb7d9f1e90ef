// SPDX-License-Identifier: Apache-2.0
#include "token.h"

static const char *explain_error(enum json_error_code code)
{
    switch (code) {
    case json_error_out_of_memory:
        return "there is not enough memory";
    case json_error_invalid_utf8:
        return "text that is not UTF-8";
    case json_error_premature_end_of_input:
        return "the text ends too early";
    case json_error_end_of_input_expected:
        return "text behind the object";
    case json_error_duplicate_key:
        return "a name appears twice in an object";
    case json_error_numeric_overflow:
        return "a number is too large";
    case json_error_null_byte_in_key:
    case json_error_null_character:
        return "a NUL in a string";
    default:
        return "not JSON";
    }
}

/* Returns the offset at which brackets are nested too deeply, or the length of the text. */
static size_t find_depth(struct mk_str text)
{
    unsigned depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && depth && (c == '}' || c == ']'))
            depth--;
        if (depth > STRICT_JSON_DEPTH_MAX)
            return i;
    }
    return text.len;
}

static void report_depth(struct mk_str text, size_t at, struct mk_buf *message)
{
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        column = text.p[i] == '\n' ? 1 : column + 1;
        line += text.p[i] == '\n';
    }
    mk_buf_addf(message, "line %u, column %u: nested more than %d times", line, column, STRICT_JSON_DEPTH_MAX);
}

json_t *strict_json_read_object(struct mk_str text, struct mk_buf *message)
{
    json_error_t error;
    size_t deep = find_depth(text);
    if (deep < text.len) {
        if (message)
            report_depth(text, deep, message);
        return NULL;
    }
    json_t *root = json_loadb(text.len ? text.p : "", text.len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(root))
        return root;
    if (message && root)
        mk_buf_addf(message, "line 1, column 1: not an object");
    else if (message)
        mk_buf_addf(message, "line %d, column %d: %s", error.line > 0 ? error.line : 1, error.column,
                    explain_error(json_error_code(&error)));
    json_decref(root);
    return NULL;
}

struct mk_str strict_json_text(const json_t *string)
{
    return mk_str(json_string_value(string), json_string_length(string));
}

struct mk_str strict_json_string(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? strict_json_text(value) : MK_STR_NONE;
}

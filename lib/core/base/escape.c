// SPDX-License-Identifier: Apache-2.0
/*
 * Escapes text for HTML and JSON, and paths for URIs (<monkey/base/escape.h>).
 */
#include <monkey/base/escape.h>
#include <monkey/base/utf8.h>

static struct mk_str find_reference(unsigned char c)
{
    switch (c) {
    case '&':
        return MK_STR("&amp;");
    case '<':
        return MK_STR("&lt;");
    case '>':
        return MK_STR("&gt;");
    case '"':
        return MK_STR("&quot;");
    case '\'':
        return MK_STR("&#39;");
    default:
        return c < 0x20 || c == 0x7f ? MK_STR("&#xfffd;") : MK_STR_NONE;
    }
}

void mk_html_escape(struct mk_buf *out, struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        struct mk_str reference = find_reference((unsigned char)text.p[i]);
        if (reference.len)
            mk_buf_adds(out, reference);
        else
            mk_buf_addc(out, text.p[i]);
    }
}

/* Bytes that a path has as they are: pchar of RFC 3986 section 3.3, and the slash. */
static const bool is_path_char[256] = {
    ['!'] = true,         ['$'] = true, ['&' ... ';'] = true, ['='] = true,
    ['@' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true, ['~'] = true,
};

void mk_path_encode(struct mk_buf *out, struct mk_str path)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t done = 0;
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (is_path_char[c])
            continue;
        char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        mk_buf_adds(out, mk_str(path.p + done, i - done));
        mk_buf_add(out, escape, sizeof(escape));
        done = i + 1;
    }
    if (done < path.len)
        mk_buf_adds(out, mk_str_after(path, done));
}

/* Encodes what is between these texts, which stay. */
static void encode_between(struct mk_buf *out, struct mk_str path, struct mk_str kept)
{
    const char *at;
    while (path.len && (at = memmem(path.p, path.len, kept.p, kept.len))) {
        size_t n = (size_t)(at - path.p);
        mk_path_encode(out, mk_str(path.p, n));
        mk_buf_adds(out, kept);
        path = mk_str_after(path, n + kept.len);
    }
    mk_path_encode(out, path);
}

void mk_path_encode_kept(struct mk_buf *out, struct mk_str path, bool has_encoded_slash)
{
    if (has_encoded_slash)
        encode_between(out, path, MK_STR("%2F"));
    else
        mk_path_encode(out, path);
}

void mk_path_encode_raw(struct mk_buf *out, struct mk_str path)
{
    encode_between(out, path, MK_STR("%"));
}

bool mk_path_decode(struct mk_buf *out, struct mk_str path)
{
    bool is_whole = true;
    for (size_t i = 0; i < path.len; i++) {
        int c = mk_percent_value(path.p + i, path.len - i);
        is_whole &= c >= 0 || path.p[i] != '%';
        mk_buf_addc(out, c >= 0 ? (char)c : path.p[i]);
        i += c >= 0 ? 2 : 0;
    }
    return is_whole;
}

void mk_json_escape(struct mk_buf *out, struct mk_str text)
{
    while (text.len) {
        struct mk_str character = mk_utf8_next(&text);
        char last = character.p[character.len - 1];
        if (mk_utf8_is_control(character))
            mk_buf_addf(out, "\\u%04x", (unsigned char)last);
        else if (last == '"' || last == '\\')
            mk_buf_addf(out, "\\%c", last);
        else
            mk_buf_adds(out, character);
    }
}

void mk_quoted_escape(struct mk_buf *out, struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            mk_buf_addc(out, '\\');
        mk_buf_addc(out, text.p[i]);
    }
}

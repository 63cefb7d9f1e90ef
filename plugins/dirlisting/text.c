// SPDX-License-Identifier: Apache-2.0
#include "template.h"

#include <monkey/base/escape.h>
#include <monkey/base/time.h>
#include <monkey/base/utf8.h>

#include <inttypes.h>
#include <stdio.h>

/* ── HTML ── */

/* Control characters, those of HTML that are none (U+FDD0 ..., U+FFFE), and those that change the direction. */
static bool is_hidden_char(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe;
}

/* Appends a control character of a name as the picture of it (U+2400 and following). */
static void add_picture(struct mk_buf *out, uint32_t c)
{
    char picture[] = {'\xe2', '\x90', (char)(0x80 + c)};
    mk_buf_add(out, picture, sizeof(picture));
}

static void add_char(struct mk_buf *out, struct mk_str bytes, bool lines)
{
    uint32_t c = mk_utf8_decode(bytes);
    if (lines && (c == '\n' || c == '\t'))
        mk_buf_addc(out, (char)c);
    else if (!lines && (c == '\n' || c == '\t' || c == '\r'))
        add_picture(out, c);
    else if (!lines || c != '\r')
        mk_html_escape(out, is_hidden_char(c) ? MK_UTF8_REPLACEMENT : bytes);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

static size_t count_plain(struct mk_str text)
{
    size_t n = 0;
    while (n < text.len && is_plain((unsigned char)text.p[n]))
        n++;
    return n;
}

void text_html(struct mk_buf *out, struct mk_str text, bool lines)
{
    while (text.len) {
        size_t n = count_plain(text);
        mk_buf_add(out, text.p, n);
        text = mk_str_after(text, n);
        if (text.len)
            add_char(out, mk_utf8_next(&text), lines);
    }
}

/* ── URIs ── */

void text_uri(struct mk_buf *out, struct mk_str bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        if (mk_is_name_byte((char)c, "-._~"))
            mk_buf_addc(out, (char)c);
        else
            mk_buf_add(out, escape, sizeof(escape));
    }
}

/* ── numbers and dates ── */

static struct mk_str get_length(const char *storage, int len)
{
    return mk_str(storage, len < 0 ? 0 : len < TEXT_BYTES ? (size_t)len : TEXT_BYTES - 1);
}

struct mk_str text_number(char *storage, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            storage[at++] = ',';
        storage[at++] = digits[i];
    }
    return get_length(storage, at);
}

struct mk_str text_exact_size(char *storage, uint64_t bytes)
{
    struct mk_str number = text_number(storage, bytes);
    int len = snprintf(storage + number.len, TEXT_BYTES - number.len, bytes == 1 ? " byte" : " bytes");
    return get_length(storage, (int)number.len + len);
}

struct mk_str text_size(char *storage, uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    unsigned unit = 0;
    uint64_t rest = 0;
    while (bytes >= 1024) {
        rest = bytes % 1024;
        bytes /= 1024;
        unit++;
    }
    uint64_t tenths = bytes * 10 + (rest * 10 + 512) / 1024;
    if (unit && tenths < 100)
        return get_length(storage, snprintf(storage, TEXT_BYTES, "%u.%u %s", (unsigned)(tenths / 10),
                                            (unsigned)(tenths % 10), units[unit]));
    uint64_t whole = unit ? (tenths + 5) / 10 : bytes;
    if (whole == 1024)
        return get_length(storage, snprintf(storage, TEXT_BYTES, "1.0 %s", units[unit + 1]));
    return get_length(storage, snprintf(storage, TEXT_BYTES, "%u %s", (unsigned)whole, units[unit]));
}

struct mk_str text_time(char *storage, int64_t seconds)
{
    size_t n = mk_time_iso(seconds, storage);
    if (n)
        storage[sizeof("2026-11-22") - 1] = ' ';
    return mk_str(storage, n ? sizeof("2026-11-22 19:45") - 1 : 0);
}

struct mk_str text_iso_time(char *storage, int64_t seconds)
{
    size_t n = mk_time_iso(seconds, storage);
    if (n)
        storage[n++] = 'Z';
    return mk_str(storage, n);
}

/*
 * A table of extensions, and of names without one, in lower case and sorted by their bytes.
 */
enum kind { ARCHIVE, AUDIO, CODE, DOCUMENT, FONT, IMAGE, PROGRAM, TEXT, VIDEO };

enum { EXTENSION_BYTES = 12 };

static const struct mk_str names[] = {
    [ARCHIVE] = MK_STR("archive"),   [AUDIO] = MK_STR("audio"), [CODE] = MK_STR("code"),
    [DOCUMENT] = MK_STR("document"), [FONT] = MK_STR("font"),   [IMAGE] = MK_STR("image"),
    [PROGRAM] = MK_STR("program"),   [TEXT] = MK_STR("text"),   [VIDEO] = MK_STR("video"),
};

/* clang-format off */
static const struct {
    char extension[EXTENSION_BYTES];
    uint8_t kind;
} rows[] = {
    {"7z", ARCHIVE}, {"aac", AUDIO}, {"aiff", AUDIO}, {"apk", ARCHIVE}, {"apng", IMAGE}, {"appimage", PROGRAM},
    {"asc", TEXT}, {"authors", TEXT}, {"avi", VIDEO}, {"avif", IMAGE}, {"bash", CODE}, {"bat", PROGRAM},
    {"bin", PROGRAM}, {"bmp", IMAGE}, {"br", ARCHIVE}, {"bz2", ARCHIVE}, {"c", CODE}, {"cc", CODE}, {"cfg", TEXT},
    {"changelog", TEXT}, {"changes", TEXT}, {"cjs", CODE}, {"conf", TEXT}, {"copying", TEXT}, {"cpp", CODE},
    {"cs", CODE}, {"css", CODE}, {"csv", TEXT}, {"cxx", CODE}, {"deb", ARCHIVE}, {"diff", CODE}, {"dmg", ARCHIVE},
    {"doc", DOCUMENT}, {"dockerfile", CODE}, {"docx", DOCUMENT}, {"eot", FONT}, {"epub", DOCUMENT}, {"exe", PROGRAM},
    {"flac", AUDIO}, {"flv", VIDEO}, {"gif", IMAGE}, {"go", CODE}, {"gz", ARCHIVE}, {"h", CODE}, {"heic", IMAGE},
    {"heif", IMAGE}, {"hpp", CODE}, {"htm", CODE}, {"html", CODE}, {"ico", IMAGE}, {"img", ARCHIVE}, {"ini", TEXT},
    {"ipynb", CODE}, {"iso", ARCHIVE}, {"jar", ARCHIVE}, {"java", CODE}, {"jpeg", IMAGE}, {"jpg", IMAGE},
    {"js", CODE}, {"json", CODE}, {"jsx", CODE}, {"jxl", IMAGE}, {"kt", CODE}, {"license", TEXT}, {"log", TEXT},
    {"lua", CODE}, {"lz", ARCHIVE}, {"lz4", ARCHIVE}, {"m", CODE}, {"m3u8", VIDEO}, {"m4a", AUDIO}, {"m4v", VIDEO},
    {"makefile", CODE}, {"md", TEXT}, {"mid", AUDIO}, {"midi", AUDIO}, {"mjs", CODE}, {"mkv", VIDEO}, {"mov", VIDEO},
    {"mp3", AUDIO}, {"mp4", VIDEO}, {"mpeg", VIDEO}, {"mpg", VIDEO}, {"msi", PROGRAM}, {"odp", DOCUMENT},
    {"ods", DOCUMENT}, {"odt", DOCUMENT}, {"oga", AUDIO}, {"ogg", AUDIO}, {"ogv", VIDEO}, {"opus", AUDIO},
    {"otf", FONT}, {"patch", CODE}, {"pdf", DOCUMENT}, {"php", CODE}, {"pl", CODE}, {"png", IMAGE}, {"ppt", DOCUMENT},
    {"pptx", DOCUMENT}, {"ps", DOCUMENT}, {"psd", IMAGE}, {"py", CODE}, {"rar", ARCHIVE}, {"rb", CODE},
    {"readme", TEXT}, {"rpm", ARCHIVE}, {"rs", CODE}, {"rst", TEXT}, {"rtf", DOCUMENT}, {"sh", CODE},
    {"sha256sums", TEXT}, {"sql", CODE}, {"svg", IMAGE}, {"swift", CODE}, {"tar", ARCHIVE}, {"tex", CODE},
    {"tgz", ARCHIVE}, {"tif", IMAGE}, {"tiff", IMAGE}, {"toml", CODE}, {"ts", CODE}, {"tsx", CODE}, {"ttf", FONT},
    {"txt", TEXT}, {"wasm", PROGRAM}, {"wav", AUDIO}, {"webm", VIDEO}, {"webp", IMAGE}, {"woff", FONT},
    {"woff2", FONT}, {"xcf", IMAGE}, {"xls", DOCUMENT}, {"xlsx", DOCUMENT}, {"xml", CODE}, {"xz", ARCHIVE},
    {"yaml", CODE}, {"yml", CODE}, {"zip", ARCHIVE}, {"zst", ARCHIVE},
};
/* clang-format on */

/* Copies the extension in lower case, or the name if it has none. Returns false if that is empty or too long. */
static bool get_extension(struct mk_str name, char ret[EXTENSION_BYTES])
{
    const char *dot = name.len ? memrchr(name.p, '.', name.len) : NULL;
    const char *first = dot ? dot + 1 : name.p;
    size_t len = name.len - (size_t)(first - name.p);
    if (len == 0 || len >= EXTENSION_BYTES || dot == name.p)
        return false;
    for (size_t i = 0; i < len; i++)
        ret[i] = mk_lower(first[i]);
    ret[len] = '\0';
    return true;
}

struct mk_str kind_of(struct mk_str name)
{
    char extension[EXTENSION_BYTES];
    size_t low = 0, high = MK_COUNT_OF(rows);
    if (!get_extension(name, extension))
        return MK_STR("file");
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(extension, rows[middle].extension);
        if (order == 0)
            return names[rows[middle].kind];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return MK_STR("file");
}

/* Returns true for what needs no encoding in RFC 8187 and is safe in names of files of all systems. */
static bool is_safe(char c)
{
    return mk_is_name_byte(c, "-._+~!$&#^");
}

static bool is_plain_name(struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_safe(name.p[i]) && name.p[i] != ' ')
            return false;
    return true;
}

static void write_plain(struct mk_buf *out, struct mk_str name)
{
    while (name.len) {
        struct mk_str character = mk_utf8_next(&name);
        bool keep = character.len == 1 && (is_safe(character.p[0]) || character.p[0] == ' ');
        mk_buf_addc(out, keep ? character.p[0] : '_');
    }
}

static void write_encoded(struct mk_buf *out, struct mk_str name)
{
    while (name.len) {
        struct mk_str character = mk_utf8_next(&name);
        if (mk_utf8_is_control(character) || strchr("/\\:*?\"<>|", character.p[0]))
            character = MK_STR("_");
        if (character.len == 1 && is_safe(character.p[0]))
            mk_buf_addc(out, character.p[0]);
        else
            text_uri(out, character);
    }
}

void disposition_write(struct mk_buf *out, struct mk_str name, struct mk_str suffix)
{
    while (name.len && name.p[0] == '.')
        name = mk_str_after(name, 1);
    if (!name.len)
        name = MK_STR("files");
    mk_buf_adds(out, MK_STR("attachment; filename=\""));
    write_plain(out, name);
    mk_buf_addf(out, ".%.*s\"", MK_STR_ARG(suffix));
    if (is_plain_name(name))
        return;
    mk_buf_adds(out, MK_STR("; filename*=UTF-8''"));
    write_encoded(out, name);
    mk_buf_addf(out, ".%.*s", MK_STR_ARG(suffix));
}

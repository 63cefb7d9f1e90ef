// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <monkey/base/utf8.h>

#include <stdio.h>
#include <time.h>

void text_add_colour(struct mk_buf *out, const struct text_style *style, enum text_colour colour)
{
    static const char *const codes[] = {
        [PLAIN] = "0",   [BOLD] = "1",  [DIM] = "2",   [RED] = "31",       [GREEN] = "32",
        [YELLOW] = "33", [BLUE] = "34", [CYAN] = "36", [HEADING] = "30;42"};
    if (style->colours)
        mk_buf_addf(out, "\033[%sm", codes[colour]);
}

/* ── characters ── */

enum kind { NARROW, WIDE, COMBINING, ESCAPED };

static const struct {
    uint32_t first, last;
    enum kind kind;
} ranges[] = {
    {0x00, 0x1f, ESCAPED},     {0x7f, 0x9f, ESCAPED},     {0xad, 0xad, ESCAPED},     /* C0, C1; soft hyphen */
    {0x300, 0x36f, COMBINING}, {0x61c, 0x61c, ESCAPED},                              /* Arabic letter mark */
    {0x1100, 0x115f, WIDE},    {0x200b, 0x200f, ESCAPED}, {0x2028, 0x202e, ESCAPED}, /* direction, line separators */
    {0x2060, 0x206f, ESCAPED}, {0x2e80, 0xa4cf, WIDE},    {0xac00, 0xd7a3, WIDE},
    {0xf900, 0xfaff, WIDE},    {0xfe00, 0xfe0f, ESCAPED}, {0xfe30, 0xfe6f, WIDE}, /* variation selectors */
    {0xfeff, 0xfeff, ESCAPED}, {0xff00, 0xff60, WIDE},    {0xffe0, 0xffe6, WIDE},
    {0x1f300, 0x1faff, WIDE},  {0x20000, 0x3fffd, WIDE},  {0xe0000, 0xe0fff, ESCAPED}, /* tags */
};

static enum kind find_kind(uint32_t c)
{
    for (size_t i = 0; i < MK_COUNT_OF(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return ranges[i].kind;
    return NARROW;
}

/* Reads a character of UTF-8. Returns its bytes; 0: it is malformed, and `*ret` its first byte. */
static size_t read_character(const char *text, uint32_t *ret)
{
    size_t n = mk_utf8_length(mk_str(text, strnlen(text, 4)));
    *ret = n ? mk_utf8_decode(mk_str(text, n)) : (unsigned char)*text;
    return n;
}

void text_add_safe(struct mk_buf *out, const char *text)
{
    uint32_t c;
    for (size_t n; *text; text += n ? n : 1) {
        n = read_character(text, &c);
        if (n && find_kind(c) != ESCAPED)
            mk_buf_add(out, text, n);
        else if (!n || c < 0x100)
            mk_buf_addf(out, "\\x%02x", c);
        else
            mk_buf_addf(out, "\\u{%x}", c);
    }
}

void text_add_json(struct mk_buf *out, const char *line)
{
    uint32_t c;
    for (size_t n; *line; line += n ? n : 1) {
        n = read_character(line, &c);
        if (n && find_kind(c) != ESCAPED)
            mk_buf_add(out, line, n);
        else if (n && c > 0xffff)
            mk_buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
        else
            mk_buf_addf(out, "\\u%04x", n ? c : 0xfffd);
    }
}

static size_t measure_character(const char *text, size_t *ret_bytes)
{
    static const size_t columns[] = {[NARROW] = 1, [WIDE] = 2, [COMBINING] = 0, [ESCAPED] = 0};
    uint32_t c;
    size_t n = read_character(text, &c);
    *ret_bytes = n ? n : 1;
    return n ? columns[find_kind(c)] : 1;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    for (size_t n; *text; text += n)
        width += measure_character(text, &n);
    return width;
}

size_t text_add_truncated(struct mk_buf *out, const char *text, size_t width, const struct text_style *style)
{
    bool fits = text_width(text) <= width;
    size_t used = 0, room = fits ? width : width - (width > 0);
    for (size_t n; *text; text += n) {
        size_t columns = measure_character(text, &n);
        if (used + columns > room)
            break;
        mk_buf_add(out, text, n);
        used += columns;
    }
    if (!fits && width) {
        mk_buf_adds(out, mk_str_c(style->unicode ? "…" : "~"));
        used++;
    }
    return used;
}

/* ── numbers ── */

void text_add_bytes(struct mk_buf *out, double n)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    unsigned unit = 0;
    for (; n >= 1023.5 && unit < 5; unit++)
        n /= 1024;
    mk_buf_addf(out, unit && n < 99.95 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}

/* Appends 3.2 below 100, else 436,089. */
static void add_rate(struct mk_buf *out, double n)
{
    char digits[32];
    if (n > 0 && n < 99.95) {
        mk_buf_addf(out, "%.1f", n);
        return;
    }
    int len = snprintf(digits, sizeof(digits), "%.0f", n < 1e15 ? n : 1e15);
    for (int i = 0; i < len; i++)
        mk_buf_addf(out, i && (len - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
}

/* Appends 0.21 ms, 12.5 ms or 3.0 s. */
static void add_us(struct mk_buf *out, uint64_t us)
{
    double ms = (double)us / 1000;
    if (ms < 999.5)
        mk_buf_addf(out, ms < 9.995 ? "%.2f ms" : ms < 99.95 ? "%.1f ms" : "%.0f ms", ms);
    else
        mk_buf_addf(out, "%.1f s", ms / 1000);
}

void text_add_seconds(struct mk_buf *out, long long n, unsigned n_units)
{
    static const struct {
        const char *name;
        long long seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    unsigned i = 0;
    while (i < 3 && n < units[i].seconds)
        i++;
    mk_buf_addf(out, "%lld %s", n / units[i].seconds, units[i].name);
    if (n_units > 1 && i < 3)
        mk_buf_addf(out, " %lld %s", n % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
}

void text_add_clock(struct mk_buf *out, uint64_t unix_us)
{
    time_t seconds = (time_t)(unix_us / 1000000);
    struct tm tm = {0};
    localtime_r(&seconds, &tm);
    mk_buf_addf(out, "%02d:%02d:%02d.%03u", tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(unix_us / 1000 % 1000));
}

/* ── drawings ── */

void text_add_bar(struct mk_buf *out, double share, size_t width, bool unicode)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t steps = unicode ? 8 : 1; /* of a column */
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    size_t filled = (size_t)(share * (double)(width * steps) + 0.5), whole = filled / steps, rest = filled % steps;
    for (size_t i = 0; i < whole; i++)
        mk_buf_adds(out, mk_str_c(unicode ? "█" : "|"));
    mk_buf_adds(out, mk_str_c(eighths[rest]));
    for (size_t i = whole + (rest > 0); i < width; i++)
        mk_buf_addc(out, ' ');
}

void text_add_history(struct mk_buf *out, const double *values, size_t n, bool unicode)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", "_", "_", ".", ".", "-", "-", "=", "#"};
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < n; i++) {
        unsigned height = most > 0 && values[i] > 0 ? (unsigned)(values[i] / most * 7 + 0.5) + 1 : 0;
        mk_buf_adds(out, mk_str_c((unicode ? bars : letters)[height]));
    }
}

static struct cell make_cell(void (*add)(struct mk_buf *out, double n), double n, const char *suffix)
{
    struct cell cell;
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    add(&out, n);
    mk_buf_addf(&out, "%s", suffix);
    mk_buf_cstr(&out);
    return cell;
}

struct cell cell_bytes(double n, const char *suffix)
{
    return make_cell(text_add_bytes, n, suffix);
}

struct cell cell_rate(double n, const char *suffix)
{
    return make_cell(add_rate, n, suffix);
}

struct cell cell_us(uint64_t us)
{
    struct cell cell = {"-"};
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    if (us) {
        add_us(&out, us);
        mk_buf_cstr(&out);
    }
    return cell;
}

struct cell cell_seconds(long long n)
{
    struct cell cell;
    struct mk_buf out;
    mk_buf_init_fixed(&out, cell.text, sizeof(cell.text));
    text_add_seconds(&out, n, 2);
    mk_buf_cstr(&out);
    return cell;
}

enum { TEXT_BYTES_MAX = 4096 };

struct line line_begin(struct mk_buf *out, const struct text_style *style)
{
    return (struct line){.out = out, .style = style, .left = style->columns};
}

void line_skip(struct line *l, size_t n)
{
    for (; n && l->left; n--, l->left--)
        mk_buf_addc(l->out, ' ');
}

void line_end(struct line *l, bool fill)
{
    if (fill)
        line_skip(l, l->left);
    text_add_colour(l->out, l->style, PLAIN);
    mk_buf_addc(l->out, '\n');
}

/* Appends a text, escaped and cut. Returns the columns that were used. */
static size_t add_text(struct mk_buf *out, const char *text, size_t width, const struct text_style *style)
{
    MK_BUF_ON_STACK(safe, TEXT_BYTES_MAX);
    text_add_safe(&safe, text);
    return text_add_truncated(out, safe.err ? "..." : mk_buf_cstr(&safe), width, style);
}

enum padding { PAD_NONE, PAD_LEFT, PAD_RIGHT };

static void add_field(struct line *l, enum text_colour colour, const char *text, size_t width, enum padding padding)
{
    MK_BUF_ON_STACK(cell, TEXT_BYTES_MAX);
    width = width < l->left ? width : l->left;
    size_t used = add_text(&cell, text, width, l->style);
    if (colour != PLAIN)
        text_add_colour(l->out, l->style, colour);
    if (padding == PAD_LEFT)
        line_skip(l, width - used);
    mk_buf_adds(l->out, mk_buf_str(&cell));
    l->left -= used;
    if (padding == PAD_RIGHT)
        line_skip(l, width - used);
    if (colour != PLAIN && colour != HEADING)
        text_add_colour(l->out, l->style, PLAIN);
}

void line_add(struct line *l, enum text_colour colour, const char *text)
{
    add_field(l, colour, text, l->left, PAD_NONE);
}

void line_addf(struct line *l, enum text_colour colour, const char *format, ...)
{
    char text[TEXT_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    line_add(l, colour, text);
}

void line_field(struct line *l, enum text_colour colour, const char *text, size_t width, bool right)
{
    add_field(l, colour, text, width, right ? PAD_LEFT : PAD_RIGHT);
}

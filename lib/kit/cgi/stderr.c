// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of error output for the log (<monkey/kit/cgi.h>).
 */
#include <monkey/kit/cgi.h>

static void write_line(const struct mk_cgi_stderr *s, struct mk_str text)
{
    static const char format[] = "%s: %.*s"; /* one, so that both have the same limit */
    if (s->req)
        mk_request_log_text(s->req, MK_LOG_WARN, format, s->prefix, MK_STR_ARG(text));
    else
        mk_host_log_text(s->host, MK_LOG_WARN, format, s->prefix, MK_STR_ARG(text));
}

/* Tells whether a line has more than blanks and control bytes, of which nothing would be left in the log. */
static bool has_text(struct mk_str line)
{
    size_t i = 0;
    while (i < line.len && ((unsigned char)line.p[i] <= ' ' || line.p[i] == 0x7f))
        i++;
    return i < line.len;
}

static void end_line(struct mk_cgi_stderr *s)
{
    if (has_text(mk_str(s->line, s->len)))
        write_line(s, mk_str(s->line, s->len));
    s->len = 0;
    s->is_truncated = false;
}

void mk_cgi_stderr_add(struct mk_cgi_stderr *s, struct mk_str bytes)
{
    while (bytes.len) {
        const char *lf = memchr(bytes.p, '\n', bytes.len);
        size_t n = lf ? (size_t)(lf - bytes.p) : bytes.len, room = sizeof(s->line) - s->len;
        size_t taken = n < room ? n : room;
        memcpy(s->line + s->len, bytes.p, taken);
        s->len = (uint16_t)(s->len + taken);
        s->is_truncated |= taken < n;
        if (lf && s->len && s->line[s->len - 1] == '\r' && !s->is_truncated)
            s->len--;
        if (lf && s->len)
            end_line(s);
        bytes = mk_str(bytes.p + n + (lf != NULL), bytes.len - n - (lf != NULL));
    }
}

void mk_cgi_stderr_end(struct mk_cgi_stderr *s)
{
    if (s->len)
        end_line(s);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of error output for the log (<monkey/cgi.h>).
 */
#include <monkey/cgi.h>

enum { RATE_MS = 10000 };

static void write_line(const struct mk_cgi_stderr *s, struct mk_str text)
{
    if (s->req)
        mk_request_log_all(s->req, MK_LOG_WARN, "%s: %.*s", s->prefix, MK_STR_ARG(text));
    else
        mk_host_log_all(s->host, MK_LOG_WARN, "%s: %.*s", s->prefix, MK_STR_ARG(text));
}

/* Begins ten seconds anew, and logs how many lines the thread has left out in the last ones. */
static void renew_rate(const struct mk_cgi_stderr *s)
{
    uint64_t now = mk_loop_now_ms(s->loop);
    if (s->rate->since_ms && now - s->rate->since_ms < RATE_MS)
        return;
    if (s->rate->lost)
        mk_log_warn("%u lines of error output of scripts were left out, since there were more than %d in %d s",
                    s->rate->lost, MK_CGI_STDERR_THREAD_LINES_MAX, RATE_MS / 1000);
    *s->rate = (struct mk_cgi_stderr_rate){.since_ms = now + !now};
}

/* Tells whether a line has more than blanks and control bytes, of which nothing would be left in the log. */
static bool has_text(struct mk_str line)
{
    size_t i = 0;
    while (i < line.len && ((unsigned char)line.p[i] <= ' ' || line.p[i] == 0x7f))
        i++;
    return i < line.len;
}

/* Writes the line, or counts it above a limit. */
static void take_line(struct mk_cgi_stderr *s)
{
    renew_rate(s);
    if (s->lines == MK_CGI_STDERR_LINES_MAX) {
        s->lost++;
    } else if (s->rate->lines == MK_CGI_STDERR_THREAD_LINES_MAX) {
        s->rate->lost++;
    } else {
        s->lines++;
        s->rate->lines++;
        write_line(s, mk_str(s->line, s->len));
    }
}

static void end_line(struct mk_cgi_stderr *s)
{
    if (has_text(mk_str(s->line, s->len)))
        take_line(s);
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
    if (!s->lost)
        return;
    if (s->req)
        mk_request_log_all(s->req, MK_LOG_WARN, "%s: %u further lines of error output were left out", s->prefix,
                           s->lost);
    else
        mk_host_log_all(s->host, MK_LOG_WARN, "%s: %u further lines of error output were left out", s->prefix, s->lost);
    s->lost = 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Status codes: their reason phrases, and a page that shows one.
 *
 * As in the table of media types there are no pointers: a byte for each code is the index of a row, and a row has the
 * offset of its phrase in a struct of strings.
 */
#include "http/message/status.h"

#include <string.h>

/* As registered with IANA, without the codes that are marked unused. */
#define STATUSES(X) \
    X(100, "Continue") \
    X(101, "Switching Protocols") \
    X(102, "Processing") \
    X(103, "Early Hints") \
    X(200, "OK") \
    X(201, "Created") \
    X(202, "Accepted") \
    X(203, "Non-Authoritative Information") \
    X(204, "No Content") \
    X(205, "Reset Content") \
    X(206, "Partial Content") \
    X(207, "Multi-Status") \
    X(208, "Already Reported") \
    X(226, "IM Used") \
    X(300, "Multiple Choices") \
    X(301, "Moved Permanently") \
    X(302, "Found") \
    X(303, "See Other") \
    X(304, "Not Modified") \
    X(305, "Use Proxy") \
    X(307, "Temporary Redirect") \
    X(308, "Permanent Redirect") \
    X(400, "Bad Request") \
    X(401, "Unauthorized") \
    X(402, "Payment Required") \
    X(403, "Forbidden") \
    X(404, "Not Found") \
    X(405, "Method Not Allowed") \
    X(406, "Not Acceptable") \
    X(407, "Proxy Authentication Required") \
    X(408, "Request Timeout") \
    X(409, "Conflict") \
    X(410, "Gone") \
    X(411, "Length Required") \
    X(412, "Precondition Failed") \
    X(413, "Content Too Large") \
    X(414, "URI Too Long") \
    X(415, "Unsupported Media Type") \
    X(416, "Range Not Satisfiable") \
    X(417, "Expectation Failed") \
    X(421, "Misdirected Request") \
    X(422, "Unprocessable Content") \
    X(423, "Locked") \
    X(424, "Failed Dependency") \
    X(425, "Too Early") \
    X(426, "Upgrade Required") \
    X(428, "Precondition Required") \
    X(429, "Too Many Requests") \
    X(431, "Request Header Fields Too Large") \
    X(451, "Unavailable For Legal Reasons") \
    X(500, "Internal Server Error") \
    X(501, "Not Implemented") \
    X(502, "Bad Gateway") \
    X(503, "Service Unavailable") \
    X(504, "Gateway Timeout") \
    X(505, "HTTP Version Not Supported") \
    X(506, "Variant Also Negotiates") \
    X(507, "Insufficient Storage") \
    X(508, "Loop Detected") \
    X(510, "Not Extended") \
    X(511, "Network Authentication Required")

#define FIELD(code, reason) char reason_##code[sizeof(reason)];
#define VALUE(code, reason) .reason_##code = reason,
#define NUMBER(code, reason) ROW_##code,
#define ROW(code, reason) [ROW_##code] = {offsetof(struct reasons, reason_##code), sizeof(reason) - 1},
#define INDEX(code, reason) [code - CODE_MIN] = ROW_##code,

enum { CODE_MIN = 100, CODE_MAX = 511 };
enum { ROW_NONE, STATUSES(NUMBER) };

static const struct reasons {
    STATUSES(FIELD)
} reasons = {STATUSES(VALUE)};

static const struct row {
    uint16_t at;
    uint8_t len;
} rows[] = {STATUSES(ROW)};

static const uint8_t row_by_code[CODE_MAX - CODE_MIN + 1] = {STATUSES(INDEX)};

struct mk_str mk__status_reason(int status)
{
    if (status < CODE_MIN || status > CODE_MAX || row_by_code[status - CODE_MIN] == ROW_NONE)
        return MK_STR_NONE;
    const struct row *row = &rows[row_by_code[status - CODE_MIN]];
    return mk_str((const char *)&reasons + row->at, row->len);
}

/* Each is the code and a sentence for people; they are in one string, so that no pointer has to be relocated. */
static const char sentences[] = "400 The server could not make sense of the request.\0"
                                "401 You have to log in to see this.\0"
                                "403 You may not see this.\0"
                                "404 There is nothing at this address.\0"
                                "405 This cannot be done with this address.\0"
                                "408 The request took too long to arrive.\0"
                                "410 What was here is gone, and will not come back.\0"
                                "413 What was sent is larger than the server takes.\0"
                                "414 The address is too long.\0"
                                "429 Too many requests. Please try again later.\0"
                                "431 The headers are too large; deleting the site's cookies may help.\0"
                                "500 The server has made a mistake. Please try again later.\0"
                                "502 Another server has not answered as it should. Please try again later.\0"
                                "503 The server cannot answer now. Please try again later.\0"
                                "504 Another server has not answered in time. Please try again later.\0";

static struct mk_str find_sentence(int status)
{
    for (const char *p = sentences; *p; p += strlen(p) + 1)
        if ((p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0') == status)
            return mk_str_c(p + sizeof("400"));
    return MK_STR_NONE;
}

void mk__status_write_page(struct mk_buf *out, int status)
{
    static const char head[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">"
        "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:20vh auto;padding:0 1.5rem;"
        "border-left:.25rem solid #d9622b}h1{font-size:1.5rem;margin:0}p{margin:.5rem 0 0}</style>";
    struct mk_str reason = mk__status_reason(status), sentence = find_sentence(status);
    if (!reason.len)
        reason = status < 400 ? MK_STR("Status") : MK_STR("Error");
    mk_buf_add(out, head, sizeof(head) - 1);
    mk_buf_addf(out, "<title>%d %.*s</title><h1>%d %.*s</h1>", status, MK_STR_ARG(reason), status, MK_STR_ARG(reason));
    if (sentence.len)
        mk_buf_addf(out, "<p>%.*s</p>", MK_STR_ARG(sentence));
    mk_buf_addc(out, '\n');
}

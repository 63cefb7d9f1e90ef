// SPDX-License-Identifier: Apache-2.0
/*
 * The field lines of responses and of scripts (<monkey/base/response_parser.h>). Lines that are well-formed are read by
 * http/message/parse.c, as those of requests are. The others are malformed; RFC 9112 lets a recipient of a response
 * recover from some faults.
 */
#include "http/message/parse.h"

#include <assert.h>
#include <errno.h>

enum { EXCERPT_BYTES = 60 };

/* Reads name, blanks, ":" and value (RFC 9112 section 5.1). Returns NULL, or what is wrong. */
static const char *read_line(struct mk_field *field, const char *head, struct mk_str line)
{
    const char *colon = memchr(line.p, ':', line.len);
    if (line.p[0] == ' ' || line.p[0] == '\t')
        return "it is folded, or begins with a blank";
    if (!colon)
        return "it has no colon";
    struct mk_str name = mk_str_trim(mk_str(line.p, (size_t)(colon - line.p)));
    if (!mk_str_is_token(name))
        return "its name is empty, or has a byte that no name has";
    if (mk_str_has_control(line))
        return "it has a control byte";
    struct mk_str value = mk_str_trim(mk_str(colon + 1, (size_t)(line.p + line.len - colon - 1)));
    field->name = (struct mk_span){(uint16_t)(name.p - head), (uint16_t)name.len};
    field->value = (struct mk_span){(uint16_t)(value.p - head), (uint16_t)value.len};
    field->id = mk__parse_header_id(name);
    return NULL;
}

int mk_response_fault_set(struct mk_response_fault *fault, const char *text, unsigned number, struct mk_span line)
{
    *fault = (struct mk_response_fault){text, line, (uint16_t)number};
    return -EINVAL;
}

/* Takes the line that ends at `end`, with its CR or without. Returns 0 (it ends the head), MK_AGAIN or an error. */
static int take_line(struct mk_head_parser *p, struct mk_field *fields, unsigned fields_max, struct mk_str head,
                     size_t end, struct mk_response_fault *fault)
{
    struct mk_str line = mk_str(head.p + p->line_at, end - p->line_at);
    line.len -= line.len && line.p[line.len - 1] == '\r';
    if (!line.len) {
        p->phase = MK__PARSE_DONE;
        p->head_len = (uint16_t)(end + 1);
        return 0;
    }
    if (p->n_fields == fields_max)
        return -EMSGSIZE;
    struct mk_field *field = &fields[p->n_fields];
    const char *text = read_line(field, head.p, line);
    if (text)
        return mk_response_fault_set(fault, text, p->n_fields + 1, (struct mk_span){p->line_at, (uint16_t)line.len});
    p->seen |= 1u << field->id;
    p->n_fields++;
    p->seen_len = p->line_at = (uint16_t)(end + 1);
    return MK_AGAIN;
}

int mk_response_fields(struct mk_head_parser *p, struct mk_field *fields, const struct mk_response_limits *limits,
                       struct mk_str head, struct mk_response_fault *fault)
{
    size_t len = head.len < limits->head_bytes_max ? head.len : limits->head_bytes_max;
    int r = MK_AGAIN;
    assert(p->phase != MK__PARSE_DONE && p->line_at <= p->seen_len && p->seen_len <= len);
    while (r == MK_AGAIN) {
        if (p->seen_len == p->line_at) {
            mk__parse_fields(p, fields, limits->fields_max, mk_str(head.p, len));
            p->seen_len = p->line_at;
        }
        const char *lf = p->seen_len < len ? memchr(head.p + p->seen_len, '\n', len - p->seen_len) : NULL;
        if (!lf) {
            p->seen_len = (uint16_t)len;
            return len == limits->head_bytes_max ? -EMSGSIZE : MK_AGAIN;
        }
        r = take_line(p, fields, limits->fields_max, head, (size_t)(lf - head.p), fault);
    }
    return r;
}

void mk_response_fault_describe(const struct mk_response_fault *f, const char *head, struct mk_buf *out)
{
    if (!f->number) {
        mk_buf_addf(out, "%s", f->text);
        return;
    }
    struct mk_str line = mk_span_str(head, f->line);
    mk_buf_addf(out, "line %u of its head, \"", f->number);
    for (size_t i = 0; i < line.len && i < EXCERPT_BYTES; i++)
        mk_buf_addf(out, line.p[i] < ' ' || line.p[i] > '~' ? "%%%02X" : "%c", (unsigned char)line.p[i]);
    mk_buf_addf(out, "%s\": %s", line.len > EXCERPT_BYTES ? "..." : "", f->text);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the objects `request` and `param`.
 */
#include "compat/old.h"

#include "objects.h"

#include <limits.h>
#include <string.h>

enum { HEADER_NAME_BYTES_MAX = 256 };

#define METHOD_CALL(name) \
    static int is_##name(duda_request_t *dr) \
    { \
        return object_request.is_##name(dr); \
    }

METHOD_CALL(get)
METHOD_CALL(post)
METHOD_CALL(head)
METHOD_CALL(put)
METHOD_CALL(delete)

/* ── the body ── */

static int is_data(duda_request_t *dr)
{
    return object_request.is_data(dr) && (is_post(dr) || is_put(dr));
}

static int is_content_type(duda_request_t *dr, const char *type)
{
    const char *value = object_request.header_get(dr, "Content-Type");
    return value && type && strcmp(value, type) == 0;
}

static void *get_data(duda_request_t *dr, unsigned long *len)
{
    size_t n = 0;
    const char *body = object_request.body(dr, &n);
    char *copy = body ? object_mem.alloc(n + 1) : NULL;
    if (copy)
        memcpy(copy, body, n + 1);
    if (len)
        *len = copy ? n : 0;
    return copy;
}

static long get_content_length(duda_request_t *dr)
{
    size_t n = 0;
    if (object_request.body(dr, &n))
        return (long)n;
    return (long)object_request.content_length(dr);
}

/* ── headers ── */

/* Copies the name without its colon. Returns how many blanks the caller expects before the value, or -1. */
static int read_name(const char *name, char *ret)
{
    size_t len = name ? strlen(name) : 0;
    bool has_colon = len && name[len - 1] == ':';
    len -= has_colon;
    if (len == 0 || len >= HEADER_NAME_BYTES_MAX)
        return -1;
    memcpy(ret, name, len);
    ret[len] = '\0';
    return has_colon ? 0 : 1;
}

/* Returns the value, or NULL, and the blanks of read_name(). */
static const char *find_header(duda_request_t *dr, const char *name, int *ret_blanks)
{
    char plain[HEADER_NAME_BYTES_MAX];
    *ret_blanks = read_name(name, plain);
    return *ret_blanks < 0 ? NULL : object_request.header_get(dr, plain);
}

static char *get_header(duda_request_t *dr, const char *name)
{
    int blanks;
    const char *value = find_header(dr, name, &blanks);
    if (!value)
        return NULL;
    size_t len = strlen(value);
    char *copy = object_mem.alloc(len + (size_t)blanks + 1);
    if (copy) {
        memset(copy, ' ', (size_t)blanks);
        memcpy(copy + blanks, value, len + 1);
    }
    return copy;
}

/* The text may have the blank in front with which get_header() returns the value. */
static int compare_header(duda_request_t *dr, const char *name, const char *text)
{
    int blanks;
    const char *value = find_header(dr, name, &blanks);
    if (!value || !text)
        return -1;
    if (blanks && *text == ' ')
        text++;
    return strncmp(value, text, strlen(text)) == 0 ? 0 : -1;
}

/* The text may begin with the blank, too: services look for a first word so. */
static int search_header(duda_request_t *dr, const char *name, const char *text)
{
    char *value = text ? get_header(dr, name) : NULL;
    const char *found = value ? strcasestr(value, text) : NULL;
    int place = found ? (int)(found - value) : -1;
    object_mem.free(value);
    return place;
}

/* ── requests that are alive ── */

static int validate_socket(int socket)
{
    return object_request.validate_socket(socket);
}

static int validate_request(duda_request_t *dr)
{
    return object_request.validate_request(dr);
}

const struct duda_old_request_calls old_request = {
    .is_get = is_get,
    .is_post = is_post,
    .is_head = is_head,
    .is_put = is_put,
    .is_delete = is_delete,
    .is_data = is_data,
    .is_content_type = is_content_type,
    .get_data = get_data,
    .content_length = get_content_length,
    .header_get = get_header,
    .header_cmp = compare_header,
    .header_contains = search_header,
    .validate_socket = validate_socket,
    .validate_request = validate_request,
};

/* ── param, by number or by name ── */

/* Returns whether an argument is a number: the first page has no strings. */
static bool is_number(intptr_t which)
{
    return which >= SHRT_MIN && which <= SHRT_MAX;
}

static char *get_param(duda_request_t *dr, intptr_t which)
{
    if (is_number(which))
        return object_param_1.get(dr, (short)which);
    return object_param_2.get(dr, (const char *)which);
}

static int get_param_number(duda_request_t *dr, intptr_t which, long *ret)
{
    if (is_number(which))
        return object_param_1.get_number(dr, (short)which, ret);
    return object_param_2.get_number(dr, (const char *)which, ret);
}

static short count_params(duda_request_t *dr)
{
    return object_param_1.count(dr);
}

static short get_param_len(duda_request_t *dr, intptr_t which)
{
    if (is_number(which))
        return object_param_1.len(dr, (short)which);
    const char *value = object_param_2.get(dr, (const char *)which);
    return value && strlen(value) <= SHRT_MAX ? (short)strlen(value) : -1;
}

const struct duda_old_param old_param = {
    .get = get_param,
    .get_number = get_param_number,
    .count = count_params,
    .len = get_param_len,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The package json (<duda/packages/json/json.h>): trees of cJSON. What cJSON leaves to its callers is done here: the
 * grammar and the limits of texts (scan.c), exact numbers (print.c), and checks of what is added to which tree.
 */
#include <cjson/cJSON.h>

#include <duda/duda.h>
#include <duda/packages/json/json.h>

#include "print.h"
#include "scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_BYTES = 128 };

static const struct scan_limits limits = {DUDA_JSON_BYTES_MAX, DUDA_JSON_VALUES_MAX, DUDA_JSON_DEPTH_MAX};
static const double exact_max = 9007199254740992; /* 2^53 */

/* ── errors ── */

static _Thread_local char error_text[ERROR_BYTES]; /* empty: the last parse has not failed */

static const char *get_error(void)
{
    return error_text[0] ? error_text : NULL;
}

static void set_error(const char *error)
{
    snprintf(error_text, sizeof(error_text), "%s", error);
}

static void set_scan_error(const char *text, const struct scan_result *scan)
{
    unsigned line, column;
    scan_place(text, scan->end, &line, &column);
    snprintf(error_text, sizeof(error_text), "line %u, column %u: %s", line, column, scan->error);
}

/* ── texts ── */

/* Returns whether no number of a tree that was read, and is not deep, is infinite. */
static bool is_finite(const json_t *item)
{
    bool finite = item->type != cJSON_Number || !isinf(item->valuedouble);
    for (const json_t *child = item->child; child && finite; child = child->next)
        finite = is_finite(child);
    return finite;
}

/* Reads the value that was scanned. */
static json_t *read_value(const char *text, const struct scan_result *scan)
{
    json_t *root = cJSON_ParseWithLength(text + scan->begin, scan->end - scan->begin);
    bool right = root && (!scan->exponents || is_finite(root));
    set_error(right ? "" : root ? "a number is too large" : strerror(ENOMEM));
    if (right)
        return root;
    cJSON_Delete(root);
    return NULL;
}

static json_t *parse_text(const char *text)
{
    struct scan_result scan;
    if (!text)
        set_error("there is no text");
    else if (!scan_value(text, strlen(text), &limits, &scan))
        set_scan_error(text, &scan);
    else
        return read_value(text, &scan);
    return NULL;
}

static json_t *parse_n(const char *text, size_t len)
{
    struct scan_result scan;
    if (!text)
        set_error("there is no text");
    else if (!scan_text(text, len, &limits, &scan))
        set_scan_error(text, &scan);
    else
        return read_value(text, &scan);
    return NULL;
}

static json_t *parse_data(duda_request_t *dr)
{
    size_t len = 0;
    const char *body = request->body(dr, &len);
    if (body)
        return parse_n(body, len);
    set_error("the request has no body");
    return NULL;
}

static char *print_item(const json_t *item)
{
    size_t len;
    return print_value(item, true, &len);
}

static char *print_unformatted(const json_t *item)
{
    size_t len;
    return print_value(item, false, &len);
}

/* Returns `text`, which is freed with the request, or NULL. */
static char *give_to_gc(duda_request_t *dr, char *text)
{
    if (!text || gc->add(dr, text) == 0)
        return text;
    mem->free(text);
    return NULL;
}

static char *print_gc(duda_request_t *dr, const json_t *item)
{
    return give_to_gc(dr, print_item(item));
}

static char *print_unformatted_gc(duda_request_t *dr, const json_t *item)
{
    return give_to_gc(dr, print_unformatted(item));
}

static int send_value(duda_request_t *dr, const json_t *item)
{
    size_t len;
    char *text = give_to_gc(dr, print_value(item, false, &len));
    if (!text) {
        response->error(dr, 500);
        return -ENOMEM;
    }
    response->http_content_type(dr, "json");
    response->print(dr, text, (int)len); /* INT_MAX at most */
    response->end(dr, NULL);
    return 0;
}

/* ── building ── */

/* Returns 0 if the container may get the item; otherwise -errno, and the item is freed unless it is in use. */
static int check_item(bool right, const json_t *container, json_t *item)
{
    if (item && (item->next || item->prev))
        return -EBUSY;
    if (right && item && item != container)
        return 0;
    if (item != container)
        cJSON_Delete(item);
    return -EINVAL;
}

static int finish_add(cJSON_bool added, json_t *item)
{
    if (!added)
        cJSON_Delete(item);
    return added ? 0 : -ENOMEM;
}

static int add_to_array(json_t *array, json_t *item)
{
    int err = check_item(array && array->type == cJSON_Array, array, item);
    return err < 0 ? err : finish_add(cJSON_AddItemToArray(array, item), item);
}

static int add_to_object(json_t *object, const char *key, json_t *item)
{
    int err = check_item(key && object && object->type == cJSON_Object, object, item);
    return err < 0 ? err : finish_add(cJSON_AddItemToObject(object, key, item), item);
}

/* ── reading ── */

static json_t *find_member(const json_t *object, const char *key)
{
    return key && object && object->type == cJSON_Object ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

/* Finds a value of certain types. Returns 0, -ENOENT or -EINVAL. */
static int find_type(const json_t *object, const char *key, int types, json_t **ret)
{
    *ret = find_member(object, key);
    return !*ret ? -ENOENT : (*ret)->type & types ? 0 : -EINVAL;
}

static const char *get_string(const json_t *object, const char *key)
{
    json_t *item;
    return find_type(object, key, cJSON_String, &item) == 0 ? item->valuestring : NULL;
}

static int get_double(const json_t *object, const char *key, double *ret)
{
    json_t *item;
    int err = find_type(object, key, cJSON_Number, &item);
    if (err == 0)
        *ret = item->valuedouble;
    return err;
}

static int get_int(const json_t *object, const char *key, int64_t *ret)
{
    double value;
    int err = get_double(object, key, &value);
    if (err < 0)
        return err;
    if (!(fabs(value) <= exact_max)) /* NAN, too */
        return -ERANGE;
    if (value != (double)(int64_t)value)
        return -EINVAL;
    *ret = (int64_t)value;
    return 0;
}

static int get_bool(const json_t *object, const char *key, bool *ret)
{
    json_t *item;
    int err = find_type(object, key, cJSON_True | cJSON_False, &item);
    if (err == 0)
        *ret = item->type == cJSON_True;
    return err;
}

static int remove_key(json_t *object, const char *key)
{
    json_t *item = find_member(object, key);
    if (!item)
        return -ENOENT;
    cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
    return 0;
}

static const struct duda_api_json table = {
    .create_null = cJSON_CreateNull,
    .create_true = cJSON_CreateTrue,
    .create_false = cJSON_CreateFalse,
    .create_bool = cJSON_CreateBool,
    .create_number = cJSON_CreateNumber,
    .create_string = cJSON_CreateString,
    .create_array = cJSON_CreateArray,
    .create_object = cJSON_CreateObject,
    .add_to_array = add_to_array,
    .add_to_object = add_to_object,
    .parse = parse_text,
    .parse_data = parse_data,
    .get_error = get_error,
    .print = print_item,
    .print_unformatted = print_unformatted,
    .print_gc = print_gc,
    .print_unformatted_gc = print_unformatted_gc,
    .delete = cJSON_Delete,
    .get_array_size = cJSON_GetArraySize,
    .get_array_item = cJSON_GetArrayItem,
    .get_object_item = cJSON_GetObjectItem,
    .parse_n = parse_n,
    .find = find_member,
    .get_string = get_string,
    .get_int = get_int,
    .get_double = get_double,
    .get_bool = get_bool,
    .remove = remove_key,
    .send = send_value,
};

DUDA_PACKAGE_MAIN(json_package, "json", "2.0.0", &table)

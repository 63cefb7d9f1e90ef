// SPDX-License-Identifier: Apache-2.0
/*
 * The package json: trees of values.
 */
#ifndef DUDA_PACKAGES_JSON_H
#define DUDA_PACKAGES_JSON_H

#include "../../package.h"

enum {
    cJSON_False,
    cJSON_True,
    cJSON_NULL,
    cJSON_Number,
    cJSON_String,
    cJSON_Array,
    cJSON_Object,
};

/* A value. Elements of an array or object are a list: `child` is the first one. */
typedef struct cJSON {
    struct cJSON *next, *prev;
    struct cJSON *child;
    int type;
    char *valuestring;
    int valueint;
    double valuedouble;
    char *string; /* the key in an object */
} json_t;
typedef struct cJSON cJSON;

struct duda_api_json {
    /* Return a new value, for delete() or to be added to another one; NULL without memory. */
    json_t *(*create_null)(void);
    json_t *(*create_true)(void);
    json_t *(*create_false)(void);
    json_t *(*create_bool)(int value);
    json_t *(*create_number)(double value);
    json_t *(*create_string)(const char *value);
    json_t *(*create_array)(void);
    json_t *(*create_object)(void);
    /* Add a value, which then belongs to the array or object. */
    void (*add_to_array)(json_t *array, json_t *item);
    void (*add_to_object)(json_t *object, const char *key, json_t *item);
    /* Return the tree of a text, and of the request's body; NULL: it is no JSON, see get_error(). */
    json_t *(*parse)(const char *text);
    json_t *(*parse_data)(duda_request_t *dr);
    const char *(*get_error)(void);
    /* Return a new string; free() it. The _gc forms free it with the request. */
    char *(*print)(json_t *item);
    char *(*print_unformatted)(json_t *item);
    char *(*print_gc)(duda_request_t *dr, json_t *item);
    char *(*print_unformatted_gc)(duda_request_t *dr, json_t *item);
    void (*delete)(json_t *item);
    int (*get_array_size)(json_t *array);
    /* Return the element, or NULL. Keys have no letter case. */
    json_t *(*get_array_item)(json_t *array, int index);
    json_t *(*get_object_item)(json_t *object, const char *key);
};

DUDA_PACKAGE(struct duda_api_json, json)

#endif

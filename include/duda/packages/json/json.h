// SPDX-License-Identifier: Apache-2.0
/*
 * The package json: trees of JSON values (RFC 8259), by cJSON 1.7.
 *
 * A value belongs to its array or object; delete() of the root frees a tree. A tree is for one thread at a time, and
 * different threads may use different trees. What is returned of a tree lives as long as the value.
 *
 * Limits: a text of 16 MB, a million values, 128 arrays and objects within each other, and numbers of 63 characters. A
 * value needs about 80 bytes, so that router->limit() of a route should say how long its bodies may be. Numbers are
 * doubles: integers are exact up to 2^53, and a number beyond 1.8e308 is an error. Strings end with a NUL, so that
 * \u0000 in a text is an error. If an object has a name twice, the first one is found.
 */
#ifndef DUDA_PACKAGES_JSON_H
#define DUDA_PACKAGES_JSON_H

#include "../../package.h"

#ifdef __cplusplus
#define DUDA_JSON_DELETE delete_
#else
#define DUDA_JSON_DELETE delete
#endif

#ifndef cJSON__h /* <cjson/cJSON.h>, which must come before this header, has the same */

/* json_t.type */
enum {
    cJSON_False = 1 << 0,
    cJSON_True = 1 << 1,
    cJSON_NULL = 1 << 2,
    cJSON_Number = 1 << 3,
    cJSON_String = 1 << 4,
    cJSON_Array = 1 << 5,
    cJSON_Object = 1 << 6,
};

/*
 * A value, for reading; `type`, `valuestring`, `valueint` and `valuedouble` of values without children may be written.
 * Elements of an array or object are a list: `child` is the first one, and the `next` of the last one is NULL. (The
 * `prev` of the first one is the last one.)
 */
struct cJSON {
    struct cJSON *next, *prev;
    struct cJSON *child;
    int type;
    char *valuestring;
    int valueint; /* valuedouble as an integer, which ends at INT_MIN and INT_MAX */
    double valuedouble;
    char *string; /* the key in an object */
};
typedef struct cJSON cJSON;

#endif

typedef struct cJSON json_t;

enum { DUDA_JSON_BYTES_MAX = 16 << 20, DUDA_JSON_VALUES_MAX = 1000000, DUDA_JSON_DEPTH_MAX = 128 };

struct duda_api_json {
    /*
     * Return a new value, for delete() or to be added to another one; NULL without memory. create_number() makes null
     * of an infinite number and of NAN when it is printed. A string is copied; it should be UTF-8.
     */
    json_t *(*create_null)(void);
    json_t *(*create_true)(void);
    json_t *(*create_false)(void);
    json_t *(*create_bool)(int value);
    json_t *(*create_number)(double value);
    json_t *(*create_string)(const char *value);
    json_t *(*create_array)(void);
    json_t *(*create_object)(void);

    /*
     * Add a value after the others; it then belongs to the array or object. Return 0; -EINVAL: `array` is no array or
     * `object` no object, an argument is NULL, the value is the container itself; -ENOMEM. After these errors the value
     * is freed, so that the result need not be checked. A value that belongs to another one already is neither added
     * nor freed: -EBUSY.
     */
    int (*add_to_array)(json_t *array, json_t *item);
    int (*add_to_object)(json_t *object, const char *key, json_t *item);

    /*
     * Return the tree of a text; NULL: see get_error(). parse() reads the value at the beginning of a string, and
     * ignores what follows it, as the original did. parse_data() reads the body of a request, all of which must be one
     * value.
     */
    json_t *(*parse)(const char *text);
    json_t *(*parse_data)(duda_request_t *dr);
    /*
     * Returns why the last parse of this thread has failed: "line 2, column 7: a comma or } is missing"; NULL: it has
     * not. Columns count bytes. The text is valid until the next parse of the thread.
     */
    const char *(*get_error)(void);

    /*
     * Return the text of a value, with tabs and line feeds or without white space; free() it. NULL: without memory,
     * `item` is NULL, or more than 128 arrays and objects are within each other. The _gc forms free it with the
     * request.
     */
    char *(*print)(const json_t *item);
    char *(*print_unformatted)(const json_t *item);
    char *(*print_gc)(duda_request_t *dr, const json_t *item);
    char *(*print_unformatted_gc)(duda_request_t *dr, const json_t *item);
    /* Frees a tree; NULL is ignored. In C++ it is delete_(). */
    void (*DUDA_JSON_DELETE)(json_t *item);

    /* Returns how many elements an array or object has; NULL has none. Counts them: walk by `child` and `next`. */
    int (*get_array_size)(const json_t *array);
    /* Return the element, or NULL. get_object_item() ignores the letter case of keys; see find(). */
    json_t *(*get_array_item)(const json_t *array, int index);
    json_t *(*get_object_item)(const json_t *object, const char *key);

    /* Returns the tree of a text of `len` bytes, all of which must be one value. Otherwise as parse(). */
    json_t *(*parse_n)(const char *text, size_t len);
    /* Returns the value of this key, in which letter case counts; NULL: `object` is no object, or has no such key. */
    json_t *(*find)(const json_t *object, const char *key);
    /* Returns the string of this key, or NULL if it has none. */
    const char *(*get_string)(const json_t *object, const char *key);
    /*
     * Get the value of this key. Return 0, -ENOENT (there is none) or -EINVAL (it is of another type); get_int() also
     * -EINVAL for a fraction and -ERANGE beyond 2^53. After an error `*ret` is as before.
     */
    int (*get_int)(const json_t *object, const char *key, int64_t *ret);
    int (*get_double)(const json_t *object, const char *key, double *ret);
    int (*get_bool)(const json_t *object, const char *key, bool *ret);
    /* Removes this key and frees its value. Returns 0 or -ENOENT. */
    int (*remove)(json_t *object, const char *key);
    /*
     * Ends the response with the text of a value, and Content-Type: application/json. Returns 0; after an error of
     * print(), -ENOMEM, and the response is the page for the status 500. `item` stays the caller's.
     */
    int (*send)(duda_request_t *dr, const json_t *item);
};

DUDA_PACKAGE(struct duda_api_json, json)

#endif

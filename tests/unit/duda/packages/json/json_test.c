// SPDX-License-Identifier: Apache-2.0
/* The package json: numbers, strings and layout, trees that are built, no memory, and threads. */
#include <cjson/cJSON.h>

#include <duda/mem.h>
#include <duda/packages/json/json.h>

#include "testing.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const struct duda_api_json *json_api(void)
{
    return duda_package_main()->api;
}

/* ── numbers ── */

static const struct {
    const char *text, *printed;
    double number;
    int integer;
} numbers[] = {
    {"0", "0", 0, 0},
    {"-7", "-7", -7, -7},
    {"2.5", "2.5", 2.5, 2},
    {"2147483647", "2147483647", 2147483647, INT32_MAX},
    {"4000000000", "4000000000", 4e9, INT32_MAX},
    {"-4000000000", "-4000000000", -4e9, INT32_MIN},
    {"9007199254740993", "9007199254740992", 9007199254740992, INT32_MAX},
    {"1234567890123456", "1234567890123456", 1234567890123456, INT32_MAX},
    {"-9007199254740992", "-9007199254740992", -9007199254740992, INT32_MIN},
    {"100000000000000000000", "1e+20", 1e20, INT32_MAX},
    {"0.1", "0.1", 0.1, 0},
    {"0.30000000000000004", "0.30000000000000004", 0.30000000000000004, 0},
    {"1.7976931348623157e308", "1.7976931348623157e+308", 1.7976931348623157e308, INT32_MAX},
    {"1e300", "1e+300", 1e300, INT32_MAX},
    {"1e-400", "0", 0, 0},
};

TEST(numbers)
{
    json = json_api();
    for (size_t i = 0; i < COUNT(numbers); i++) {
        json_t *root = json->parse(numbers[i].text);
        assert_int_equal(root->type, cJSON_Number);
        assert_true(root->valuedouble == numbers[i].number); /* NOLINT: the same bits */
        assert_int_equal(root->valueint, numbers[i].integer);
        char *text = json->print(root);
        assert_string_equal(text, numbers[i].printed);
        free(text);
        json->delete (root);
    }
    json_t *infinite = json->create_number(INFINITY);
    char *text = json->print(infinite);
    assert_string_equal(text, "null");
    free(text);
    json->delete (infinite);
}

/* ── trees ── */

TEST(building)
{
    json = json_api();
    json_t *root = json->create_object(), *list = json->create_array();
    assert_int_equal(json->add_to_array(list, json->create_number(1)), 0); /* an int, for which the original made 0 */
    assert_int_equal(json->add_to_array(list, json->create_null()), 0);
    assert_int_equal(json->add_to_array(list, json->create_bool(0)), 0);
    assert_int_equal(json->add_to_object(root, "list", list), 0);
    assert_int_equal(json->add_to_object(root, "true", json->create_true()), 0);
    assert_int_equal(json->add_to_object(root, "false", json->create_false()), 0);
    assert_int_equal(json->add_to_object(root, "Name", json->create_string("a \"b\" \xc3\xa9\n")), 0);
    char *text = json->print_unformatted(root);
    assert_string_equal(text,
                        "{\"list\":[1,null,false],\"true\":true,\"false\":false,\"Name\":\"a \\\"b\\\" \xc3\xa9\\n\"}");
    free(text);
    assert_int_equal(json->get_array_size(root), 4);
    assert_int_equal(json->get_array_size(NULL), 0);
    assert_int_equal(json->get_array_item(list, 0)->type, cJSON_Number);
    assert_int_equal(json->get_array_item(list, 1)->type, cJSON_NULL);
    assert_null(json->get_array_item(list, 3));
    assert_null(json->get_array_item(list, -1));
    assert_null(json->get_array_item(NULL, 0));
    assert_ptr_equal(json->get_object_item(root, "name"), json->find(root, "Name"));
    assert_null(json->find(root, "name"));
    assert_null(json->find(list, "name"));
    assert_null(json->find(root, NULL));
    assert_null(json->get_object_item(root, "none"));
    json->delete (root);
    json->delete (NULL);
}

TEST(wrong_building)
{
    json = json_api();
    json_t *list = json->create_array(), *object = json->create_object(), *number = json->create_number(1);
    assert_int_equal(json->add_to_array(list, NULL), -EINVAL);
    assert_int_equal(json->add_to_array(NULL, json->create_null()), -EINVAL);
    assert_int_equal(json->add_to_array(number, json->create_null()), -EINVAL);
    assert_int_equal(json->add_to_array(object, json->create_null()), -EINVAL);
    assert_int_equal(json->add_to_array(list, list), -EINVAL);
    assert_int_equal(json->add_to_object(object, NULL, json->create_null()), -EINVAL);
    assert_int_equal(json->add_to_object(object, NULL, object), -EINVAL);
    assert_int_equal(json->add_to_object(list, "a", json->create_null()), -EINVAL);
    assert_int_equal(json->add_to_object(object, "a", number), 0);
    assert_int_equal(json->add_to_array(list, number), -EBUSY);
    assert_int_equal(json->add_to_object(object, "b", number), -EBUSY);
    assert_null(json->create_string(NULL));
    assert_null(json->print(NULL));
    char *text = json->print_unformatted(object);
    assert_string_equal(text, "{\"a\":1}");
    free(text);
    json->delete (object);
    json->delete (list);
}

TEST(typed_values)
{
    const char *text =
        "{\"s\":\"x\",\"n\":-3,\"f\":1.5,\"big\":9007199254740994,\"t\":true,\"u\":false,\"z\":null,\"a\":[]}";
    json = json_api();
    json_t *root = json->parse(text);
    int64_t n = 7;
    double f = 7;
    bool b = false;
    assert_string_equal(json->get_string(root, "s"), "x");
    assert_null(json->get_string(root, "n"));
    assert_null(json->get_string(root, "S"));
    assert_null(json->get_string(NULL, "s"));
    assert_int_equal(json->get_int(root, "f", &n), -EINVAL);
    assert_int_equal(json->get_int(root, "s", &n), -EINVAL);
    assert_int_equal(json->get_int(root, "big", &n), -ERANGE);
    assert_int_equal(json->get_int(root, "none", &n), -ENOENT);
    assert_int_equal(n, 7);
    assert_int_equal(json->get_int(root, "n", &n), 0);
    assert_int_equal(n, -3);
    assert_int_equal(json->get_double(root, "t", &f), -EINVAL);
    assert_int_equal(json->get_double(root, "f", &f), 0);
    assert_true(f > 1.4 && f < 1.6);
    assert_int_equal(json->get_bool(root, "n", &b), -EINVAL);
    assert_int_equal(json->get_bool(root, "t", &b), 0);
    assert_true(b);
    assert_int_equal(json->get_bool(root, "u", &b), 0);
    assert_false(b);
    assert_int_equal(json->add_to_object(root, "nan", json->create_number(0)), 0);
    json->find(root, "nan")->valuedouble = NAN;
    assert_int_equal(json->get_int(root, "nan", &n), -ERANGE);
    assert_int_equal(json->remove(root, "nan"), 0);
    assert_int_equal(json->remove(root, "none"), -ENOENT);
    assert_int_equal(json->remove(root, "s"), 0);
    assert_int_equal(json->remove(root, "a"), 0);
    assert_null(json->get_string(root, "s"));
    assert_int_equal(json->get_array_size(root), 6);
    json->delete (root);
}

/* cJSON calls itself for each level; a tree in itself would never end. */
TEST(printing_what_is_too_deep)
{
    json = json_api();
    json_t *root = json->create_array();
    for (unsigned n = 1; n <= DUDA_JSON_DEPTH_MAX; n++) {
        char *text = json->print(root);
        assert_non_null(text);
        free(text);
        json_t *outer = json->create_array();
        assert_int_equal(json->add_to_array(outer, root), 0);
        root = outer;
    }
    assert_null(json->print(root));
    assert_null(json->print_unformatted(root));
    json->delete (root);
}

static const struct {
    const char *bytes, *printed;
} strings[] = {
    {"\b\f\n\r\t\"\\/", "\"\\b\\f\\n\\r\\t\\\"\\\\/\""},
    {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
    {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
    {"a\xff\xc3\xa9\xc3", "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\""},
    {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
};

TEST(strings)
{
    json = json_api();
    for (size_t i = 0; i < COUNT(strings); i++) {
        json_t *root = json->create_string(strings[i].bytes), *again;
        char *text = json->print(root);
        assert_string_equal(text, strings[i].printed);
        assert_non_null(again = json->parse_n(text, strlen(text)));
        json->delete (again);
        json->delete (root);
        free(text);
    }
}

/* The layout of cJSON: what it prints itself, for values that it prints exactly. */
TEST(layout)
{
    json = json_api();
    json_t *root = json->parse("{\"a\":[1,[],{\"b\":2.5,\"c\":{}}],\"d\":\"e\",\"f\":[{},{\"g\":null}]}");
    char *ours[] = {json->print(root), json->print_unformatted(root)};
    char *theirs[] = {cJSON_Print(root), cJSON_PrintUnformatted(root)};
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(ours[i], theirs[i]);
        free(ours[i]);
        free(theirs[i]);
    }
    json->delete (root);
}

/* ── no memory ── */

static _Thread_local long countdown = -1;

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

static void *fail_malloc(size_t size)
{
    return fails() ? NULL : malloc(size);
}

static void *fail_realloc(void *ptr, size_t size)
{
    return fails() ? NULL : realloc(ptr, size);
}

static const struct duda_api_mem failing_mem = {.realloc = fail_realloc, .free = free};

/* Returns 0, or -1 if the text could not be read, built or printed; then something has said so. */
static int use_all(void)
{
    json_t *root = json->parse("{\"a\":[1,\"two\",{\"b\":null}]}");
    if (!root) {
        assert_string_equal(json->get_error(), strerror(ENOMEM));
        return -1;
    }
    int result = json->add_to_object(root, "c", json->create_string("d")) == 0 ? 0 : -1;
    if (result == 0 && json->add_to_array(json->find(root, "a"), json->create_number(7)) < 0)
        result = -1;
    char *text = json->print(root), *small = text ? json->print_unformatted(root) : NULL;
    if (result == 0 && small)
        assert_string_equal(small, "{\"a\":[1,\"two\",{\"b\":null},7],\"c\":\"d\"}");
    result = text && small ? result : -1;
    free(text);
    free(small);
    json->delete (root);
    return result;
}

TEST(without_memory)
{
    cJSON_Hooks hooks = {fail_malloc, free};
    json = json_api();
    cJSON_InitHooks(&hooks);
    long n = 0;
    for (;; n++) {
        countdown = n;
        int result = use_all();
        bool all_fine = countdown >= 0;
        countdown = -1;
        assert_int_equal(result, all_fine ? 0 : -1);
        if (all_fine)
            break;
    }
    assert_true(n > 15);
    cJSON_InitHooks(NULL);
}

/* ── threads ── */

enum { THREADS = 4, ROUNDS = 500 };

static void *use_in_thread(void *arg)
{
    char text[64], expected[64];
    snprintf(text, sizeof(text), "%*s!", (int)(intptr_t)arg, "");
    snprintf(expected, sizeof(expected), "line 1, column %d: this is no value", (int)(intptr_t)arg + 1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (json->parse(text) || strcmp(json->get_error(), expected) != 0 || use_all() < 0 || json->get_error())
            return arg;
    }
    return NULL;
}

TEST(threads)
{
    pthread_t threads[THREADS];
    void *result;
    json = json_api();
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

static int set_up(void **state)
{
    (void)state;
    mem = &failing_mem;
    return 0;
}

TEST_FILE(set_up)

// SPDX-License-Identifier: Apache-2.0
/*
 * The package json: cJSON reads every text that the scanner accepts; what is printed of a tree is JSON again, and stays
 * the same when it is read and printed once more.
 */
#include "duda/packages/json/scan.h"

#include <duda/mem.h>
#include <duda/packages/json/json.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static const struct duda_api_mem heap = {.alloc = malloc, .realloc = realloc, .free = free};
static const struct scan_limits limits = {DUDA_JSON_BYTES_MAX, DUDA_JSON_VALUES_MAX, DUDA_JSON_DEPTH_MAX};

/* Reads `text` again, which must be JSON, and prints it as `print` does. */
static char *print_again(const char *text, char *(*print)(const json_t *item))
{
    json_t *root = json->parse_n(text, strlen(text));
    CHECK(root && !json->get_error());
    char *again = print(root);
    json->DUDA_JSON_DELETE(root);
    CHECK(again);
    return again;
}

static void check_printing(const json_t *root)
{
    char *small = json->print_unformatted(root), *large = json->print(root);
    CHECK(small && large);
    char *again = print_again(small, json->print_unformatted), *same = print_again(large, json->print_unformatted);
    CHECK(strcmp(small, again) == 0 && strcmp(small, same) == 0);
    free(small);
    free(large);
    free(again);
    free(same);
}

/* Walks through a tree by the functions of the package. */
static void check_tree(const json_t *item)
{
    int n = 0;
    for (const json_t *child = item->child; child; child = child->next, n++) {
        CHECK(item->type == cJSON_Array || (child->string && json->find(item, child->string)));
        check_tree(child);
    }
    CHECK(json->get_array_size(item) == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct scan_result scan;
    mem = &heap;
    json = duda_package_main()->api;
    char *text = malloc(len + 1), *exact = malloc(len + !len);
    memcpy(text, data, len);
    memcpy(exact, data, len);
    text[len] = '\0';
    bool right = scan_text(exact, len, &limits, &scan);
    CHECK(scan.begin <= scan.end && scan.end <= len);
    json_t *root = json->parse_n(exact, len);
    CHECK(root ? right : !right || scan.exponents);
    CHECK(!root == !!json->get_error());
    if (root) {
        check_tree(root);
        check_printing(root);
        json->DUDA_JSON_DELETE(root);
    }
    json->DUDA_JSON_DELETE(json->parse(text)); /* what follows the value is ignored */
    free(text);
    free(exact);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Level 1: modules as lists of values, whose path is the rest of the URI, as JSON; with users and their passwords. */
#include "webservice.h"
#include "packages/base64/base64.h"
#include "packages/json/json.h"
#include "packages/sha1/sha1.h"

DUDA_REGISTER("Old services", "Board");

typedef json_t *(*get_value_t)(duda_request_t *dr, int parameter);
typedef json_t *(*post_value_t)(duda_request_t *dr, json_t *sent, int parameter);

typedef struct {
    const char *name;
    get_value_t get;
    post_value_t post;
    struct mk_list values;
    struct mk_list _head;
} value_t;

static struct mk_list modules;
static struct mk_list *readers;
static value_t values[3];
static int count;
static int pin;

static value_t *add_value(const char *name, get_value_t get, post_value_t post, struct mk_list *parent)
{
    value_t *value = &values[count++];

    value->name = name;
    value->get = get;
    value->post = post;
    mk_list_init(&(value->values));
    mk_list_add(&(value->_head), parent);
    return value;
}

static json_t *make(duda_request_t *dr, value_t *value, int parameter)
{
    json_t *object;
    struct mk_list *head;

    if (value->get != NULL)
        return value->get(dr, parameter);
    object = json->create_object();
    mk_list_foreach(head, &(value->values))
    {
        value_t *entry = mk_list_entry(head, value_t, _head);
        json->add_to_object(object, entry->name, make(dr, entry, parameter));
    }
    return object;
}

/* Finds the value of a path that ends with a blank or a NUL. */
static json_t *find(duda_request_t *dr, value_t *value, const char *path)
{
    int end = 0;
    struct mk_list *head;
    json_t *sent, *result;

    while (path[0] == '/')
        path++;
    while (path[end] != '/' && path[end] != ' ' && path[end] != '?' && path[end] != '\0')
        end++;
    if (end == 0 && !request->is_data(dr))
        return make(dr, value, 0);
    if (end == 0) {
        sent = value->post ? json->parse_data(dr) : NULL;
        result = sent ? value->post(dr, sent, 0) : NULL;
        json->delete (sent);
        return result;
    }
    mk_list_foreach(head, &(value->values))
    {
        value_t *entry = mk_list_entry(head, value_t, _head);
        if (strlen(entry->name) == end && memcmp(path, entry->name, end) == 0)
            return find(dr, entry, &path[end]);
    }
    return NULL;
}

static value_t *find_module(mk_pointer name)
{
    struct mk_list *head;

    mk_list_foreach(head, &modules)
    {
        value_t *module = mk_list_entry(head, value_t, _head);
        if (strlen(module->name) == name.len && memcmp(name.data, module->name, name.len) == 0)
            return module;
    }
    return NULL;
}

/* Returns the name of the user, or NULL. */
static char *get_user(duda_request_t *dr)
{
    size_t len;
    unsigned char digest[SHA_DIGEST_LENGTH];
    char *header = request->header_get(dr, "Authorization:");
    unsigned char *decoded, *encoded;
    char *colon;

    if (header == NULL || strncmp(header, "Basic ", 6) != 0)
        return NULL;
    decoded = base64->decode((unsigned char *)header + 6, strlen(header) - 6, &len);
    mem->free(header);
    if (decoded == NULL)
        return NULL;
    gc->add(dr, decoded);
    colon = memchr(decoded, ':', len);
    if (colon == NULL)
        return NULL;
    sha1->encode(colon + 1, digest, (unsigned char *)decoded + len - (unsigned char *)colon - 1);
    encoded = base64->encode(digest, sizeof(digest), &len);
    *colon = '\0';
    len = strncmp((char *)encoded, "qUqP5cyxm6YcTAhz05Hph5gvu9M=", len);
    mem->free(encoded);
    return len == 0 ? (char *)decoded : NULL;
}

static int is_reader(char *user)
{
    struct mk_list *head;

    mk_list_foreach(head, readers)
    {
        struct duda_string_line *line = mk_list_entry(head, struct duda_string_line, _head);
        if (user && strcmp(line->val, user) == 0)
            return 1;
    }
    return 0;
}

void board_callback(duda_request_t *dr)
{
    value_t *module;
    json_t *value = NULL;
    char *text;

    if (*(dr->interface.data + dr->interface.len + 1) == ' ') {
        value = json->create_array();
        json->add_to_array(value, json->create_string("gpio"));
        response->http_status(dr, 200);
        response->printf(dr, json->print_unformatted_gc(dr, value));
        json->delete (value);
        response->end(dr, NULL);
    }
    if (!is_reader(get_user(dr))) {
        response->http_status(dr, 401);
        response->http_header(dr, "WWW-Authenticate: Basic realm=\"Board\"");
        response->end(dr, NULL);
    }
    module = find_module(dr->method);
    if (module)
        value = find(dr, module, dr->method.data + dr->method.len);
    if (value == NULL) {
        response->http_status(dr, request->is_data(dr) ? 400 : 404);
        response->end(dr, NULL);
        return;
    }
    response->http_status(dr, 200);
    response->http_content_type(dr, "json");
    text = json->print_unformatted_gc(dr, value);
    response->printf(dr, text);
    json->delete (value);
    response->end(dr, NULL);
}

static json_t *get_pin(duda_request_t *dr, int parameter)
{
    return json->create_number(pin);
}

static json_t *post_pin(duda_request_t *dr, json_t *sent, int parameter)
{
    if (sent->type != cJSON_Number)
        return NULL;
    pin = sent->valueint;
    return json->create_number(pin);
}

int duda_main()
{
    value_t *gpio;
    struct duda_config *config;

    duda_load_package(base64, "base64");
    duda_load_package(sha1, "sha1");
    duda_load_package(json, "json");

    config = fconf->read_conf("board.conf");
    if (config == NULL) {
        msg->err("Could not read 'board.conf'");
        exit(-1);
    }
    readers = (struct mk_list *)fconf->section_key(fconf->section_get(config, "GLOBAL"), "Readers", DUDA_CONFIG_LIST);
    fconf->free_conf(config);

    mk_list_init(&modules);
    gpio = add_value("gpio", NULL, NULL, &modules);
    add_value("pin", get_pin, post_pin, &add_value("out", NULL, NULL, &(gpio->values))->values);
    map->static_add("/api/", "board_callback");
    return 0;
}

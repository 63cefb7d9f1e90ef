// SPDX-License-Identifier: Apache-2.0
/* Levels 0 to 2: base64, sha1, sha256 and json, as services of the time used them. */
#include "webservice.h"
#include "packages/base64/base64.h"
#include "packages/json/json.h"
#include "packages/sha1/sha1.h"
#include "packages/sha256/sha256.h"

DUDA_REGISTER("Old services", "Codecs");

void print_hex(duda_request_t *dr, unsigned char *digest, int len)
{
    int i;

    for (i = 0; i < len; i++) {
        response->printf(dr, "%02x", digest[i]);
    }
    response->printf(dr, "\n");
}

void cb_digest(duda_request_t *dr)
{
    unsigned char sha1_digest[SHA_DIGEST_LENGTH];
    unsigned char sha256_digest[SHA256_DIGEST_LENGTH];
    unsigned char *encoded, *decoded;
    unsigned long len;
    size_t out;
    char *data = request->get_data(dr, &len);

    response->http_status(dr, 200);
    sha1->encode(data, sha1_digest, len);
    sha256->encode((unsigned char *)data, sha256_digest, len);
    print_hex(dr, sha1_digest, sizeof(sha1_digest));
    print_hex(dr, sha256_digest, sizeof(sha256_digest));

    encoded = base64->encode((unsigned char *)data, len, &out);
    response->printf(dr, "%i %s\n", (int)out, encoded);
    decoded = base64->decode(encoded, out, &out);
    response->printf(dr, "%i %i", (int)out, memcmp(decoded, data, len));
    free(encoded);
    free(decoded);
    free(data);
    response->end(dr, NULL);
}

/* Services give it a text as it is in a file, with what is around it: "{SHA1}..." of a list of users. */
void cb_decode(duda_request_t *dr)
{
    unsigned long len;
    size_t out = 7;
    char *data = request->get_data(dr, &len);
    unsigned char *decoded = base64->decode((unsigned char *)data, len, &out);

    response->http_status(dr, 200);
    response->printf(dr, "%i %s", (int)out, decoded ? (char *)decoded : "wrong");
    free(decoded);
    free(data);
    response->end(dr, NULL);
}

const char *name_type(int type)
{
    switch (type) {
    case cJSON_False:
        return "false";
    case cJSON_True:
        return "true";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "number";
    case cJSON_String:
        return "string";
    case cJSON_Array:
        return "array";
    case cJSON_Object:
        return "object";
    }
    return "unknown";
}

/* Prints the fields of the elements, in both directions. */
void cb_walk(duda_request_t *dr)
{
    json_t *root = json->parse_data(dr), *item;

    if (root == NULL) {
        response->http_status(dr, 400);
        response->printf(dr, "Error before: [%s]", json->get_error());
        response->end(dr, NULL);
    }
    response->http_status(dr, 200);
    for (item = root->child; item != NULL; item = item->next) {
        response->printf(dr, "%s %s", item->string, name_type(item->type));
        if (item->type == cJSON_Number) {
            response->printf(dr, " %i %.2f", item->valueint, item->valuedouble);
        } else if (item->type == cJSON_String) {
            response->printf(dr, " %s", item->valuestring);
        }
        if (item != root->child) {
            response->printf(dr, " after %s", item->prev->string);
        }
        response->printf(dr, "\n");
    }
    response->printf(dr, "%i", json->get_array_size(root));
    json->delete (root);
    response->end(dr, NULL);
}

void cb_build(duda_request_t *dr)
{
    char *text;
    json_t *root = json->create_object();
    json_t *list = json->create_array();

    json->add_to_object(root, "list", list);
    json->add_to_array(list, json->create_number(1));
    json->add_to_array(list, json->create_number(2.5));
    json->add_to_array(list, json->create_string("three"));
    json->add_to_object(root, "yes", json->create_true());
    json->add_to_object(root, "no", json->create_bool(0));
    json->add_to_object(root, "nothing", json->create_null());
    json->add_to_object(root, "False", json->create_false());

    response->http_status(dr, 200);
    text = json->print_unformatted(root);
    response->printf(dr, "%s\n", text);
    free(text);
    text = json->print_gc(dr, root);
    response->print(dr, text, strlen(text));
    json->delete (root);

    root = json->parse(text);
    list = json->get_object_item(root, "LIST");
    response->printf(dr, "\n%i %s", json->get_array_size(list), json->get_array_item(list, 2)->valuestring);
    json->delete (root);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(base64, "base64");
    duda_load_package(sha1, "sha1");
    duda_load_package(sha256, "sha256");
    duda_load_package(json, "json");

    map->static_add("/digest/", "cb_digest");
    map->static_add("/decode/", "cb_decode");
    map->static_add("/walk/", "cb_walk");
    map->static_add("/build/", "cb_build");
    return 0;
}

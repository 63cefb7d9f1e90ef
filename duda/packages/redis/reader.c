// SPDX-License-Identifier: Apache-2.0
/*
 * Reads replies (reader.h).
 */
#include "reader.h"

#include <duda/mem.h>

#include <hiredis/read.h>

#include <monkey/status.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    LENGTH_LINE_BYTES = 64, /* more than the line of a bulk string's length has */
    ARRAYS_MAX = 8,         /* in each other: those of hiredis 0.14, which later versions do not limit */
};

/* ── the tree, as hiredis builds it ── */

static void free_tree(void *root)
{
    redisReply *reply = root;
    if (!reply)
        return;
    for (size_t i = 0; i < reply->elements; i++)
        free_tree(reply->element[i]);
    mem->free(reply);
}

/* Newer versions of hiredis also read RESP3, which no command here asks for, and arrays of any depth. */
static const char *find_fault(const redisReadTask *task)
{
    unsigned depth = 0;
    for (const redisReadTask *parent = task->parent; parent && depth <= ARRAYS_MAX; parent = parent->parent)
        depth++;
    if (depth > ARRAYS_MAX)
        return "arrays in more than 8 arrays";
    return task->type > REDIS_REPLY_ERROR ? "a type of RESP3" : NULL;
}

/* Makes a node with `extra` bytes after it, in its place of the tree. Returns NULL without memory, or at the limit. */
static redisReply *new_node(const redisReadTask *task, size_t extra)
{
    struct redis_reader *r = task->privdata;
    r->fault = find_fault(task);
    if (r->fault)
        return NULL;
    if (extra > r->bytes_max || r->bytes + sizeof(redisReply) > r->bytes_max - extra) {
        r->is_too_large = true;
        return NULL;
    }
    redisReply *node = mem->alloc(sizeof(*node) + extra);
    if (!node)
        return NULL;
    *node = (redisReply){.type = task->type};
    r->bytes += sizeof(*node) + extra;
    assert(!task->parent || (size_t)task->idx < ((redisReply *)task->parent->obj)->elements);
    if (task->parent)
        ((redisReply *)task->parent->obj)->element[task->idx] = node;
    return node;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    redisReply *node = new_node(task, len + 1);
    if (!node)
        return NULL;
    node->str = (char *)(node + 1);
    node->len = len;
    memcpy(node->str, text, len);
    node->str[len] = '\0';
    return node;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    redisReply *node = new_node(task, 0);
    if (node)
        node->integer = value;
    return node;
}

static void *create_nil(const redisReadTask *task)
{
    redisReply *node = new_node(task, 0);
    if (node)
        node->type = REDIS_REPLY_NIL; /* the task has that of a string */
    return node;
}

static void *create_array(const redisReadTask *task, size_t n)
{
    struct redis_reader *r = task->privdata;
    if (n > r->bytes_max / sizeof(redisReply *)) {
        r->is_too_large = true;
        return NULL;
    }
    redisReply *node = new_node(task, n * sizeof(redisReply *));
    if (!node)
        return NULL;
    node->element = n ? (redisReply **)(node + 1) : NULL;
    if (n)
        memset(node->element, 0, n * sizeof(redisReply *));
    node->elements = n;
    return node;
}

#ifdef REDIS_REPLY_DOUBLE /* hiredis 1.0; without these functions it makes no nodes */
static void *create_double(const redisReadTask *task, double value, char *text, size_t len)
{
    (void)value;
    return create_string(task, text, len);
}

static void *create_bool(const redisReadTask *task, int value)
{
    return create_integer(task, value);
}
#endif

/* hiredis 0.14 has an int there. */
static __attribute__((unused)) void *create_array_int(const redisReadTask *task, int n)
{
    return create_array(task, n < 0 ? 0 : (size_t)n);
}

static redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = _Generic(((redisReplyObjectFunctions *)0)->createArray, void *(*)(const redisReadTask *, int)
                            : create_array_int, default
                            : create_array),
    .createInteger = create_integer,
    .createNil = create_nil,
#ifdef REDIS_REPLY_DOUBLE
    .createDouble = create_double,
    .createBool = create_bool,
#endif
    .freeObject = free_tree,
};

/* ── one block ── */

static size_t align_size(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static size_t measure_tree(const redisReply *reply)
{
    size_t size =
        align_size(sizeof(*reply) + (reply->str ? reply->len + 1 : 0) + reply->elements * sizeof(redisReply *));
    for (size_t i = 0; i < reply->elements; i++)
        size += measure_tree(reply->element[i]);
    return size;
}

/* Copies a tree to `*at`, which is moved after it. */
static redisReply *copy_tree(const redisReply *from, char **at)
{
    redisReply *to = (redisReply *)(void *)*at;
    *at += align_size(sizeof(*to) + (from->str ? from->len + 1 : 0) + from->elements * sizeof(redisReply *));
    *to = *from;
    if (from->str) {
        to->str = (char *)(to + 1);
        memcpy(to->str, from->str, from->len + 1);
    }
    if (from->elements)
        to->element = (redisReply **)(to + 1);
    for (size_t i = 0; i < from->elements; i++)
        to->element[i] = copy_tree(from->element[i], at);
    return to;
}

redisReply *redis_reader_copy(const redisReply *reply)
{
    assert(reply);
    char *block = mem->alloc(measure_tree(reply));
    return block ? copy_tree(reply, &block) : NULL;
}

/* Makes a tree one block. Returns NULL without memory; the tree is freed in any case. */
static redisReply *flatten_reply(redisReply *tree)
{
    if (!tree->elements)
        return tree;
    redisReply *reply = redis_reader_copy(tree);
    free_tree(tree);
    return reply;
}

/* ── the reader ── */

int redis_reader_init(struct redis_reader *r, size_t bytes_max)
{
    assert(bytes_max);
    *r = (struct redis_reader){.bytes_max = bytes_max, .parser = redisReaderCreateWithFunctions(&functions)};
    if (!r->parser)
        return -ENOMEM;
    r->parser->privdata = r;
    return 0;
}

void redis_reader_release(struct redis_reader *r)
{
    if (r->parser)
        redisReaderFree(r->parser);
    r->parser = NULL;
}

int redis_reader_feed(struct redis_reader *r, const char *bytes, size_t len)
{
    assert(r->parser && (bytes || !len));
    return redisReaderFeed(r->parser, bytes, len) == REDIS_OK ? 0 : -ENOMEM;
}

static int fail_reader(struct redis_reader *r, int err, const char *text)
{
    r->error = text;
    return err;
}

static int fail_too_large(struct redis_reader *r)
{
    snprintf(r->text, sizeof(r->text), "the reply has more than the %zu bytes of reply_bytes_max", r->bytes_max);
    return fail_reader(r, -EMSGSIZE, r->text);
}

static int fail_parsing(struct redis_reader *r)
{
    if (r->is_too_large)
        return fail_too_large(r);
    if (r->fault) {
        snprintf(r->text, sizeof(r->text), "what the server sends is not the protocol of Redis (%s)", r->fault);
        return fail_reader(r, -EPROTO, r->text);
    }
    if (r->parser->err == REDIS_ERR_OOM)
        return fail_reader(r, -ENOMEM, "no memory for the reply");
    snprintf(r->text, sizeof(r->text), "what the server sends is not the protocol of Redis (%.64s)", r->parser->errstr);
    return fail_reader(r, -EPROTO, r->text);
}

/* Checks what waits for further bytes. */
static int check_rest(struct redis_reader *r)
{
    assert(r->parser->pos <= r->parser->len);
    size_t rest = r->parser->len - r->parser->pos;
    if (rest > r->bytes_max || r->bytes > r->bytes_max - rest)
        return fail_too_large(r);
    if (rest > REDIS_LINE_BYTES_MAX && !memmem(r->parser->buf + r->parser->pos, LENGTH_LINE_BYTES, "\r\n", 2))
        return fail_reader(r, -EPROTO,
                           "what the server sends is not the protocol of Redis (a line of more than 64 KB)");
    return 0;
}

int redis_reader_next(struct redis_reader *r, redisReply **ret)
{
    assert(r->parser);
    void *tree = NULL;
    if (redisReaderGetReply(r->parser, &tree) != REDIS_OK)
        return fail_parsing(r);
    if (!tree)
        return check_rest(r);
    r->bytes = 0;
    *ret = flatten_reply(tree);
    return *ret ? 1 : fail_reader(r, -ENOMEM, "no memory for the reply");
}

/* ── what error replies mean ── */

/* Redis begins them with a word in capitals; some of older versions have only a sentence. */
static const struct {
    const char *begin;
    int err;
} errors[] = {
    {"NOAUTH", -EACCES},
    {"WRONGPASS", -EACCES},
    {"NOPERM", -EACCES},
    {"DENIED", -EACCES},
    {"ERR invalid password", -EACCES},
    {"ERR AUTH", -EACCES},
    {"ERR Client sent AUTH", -EACCES},
    {"LOADING", -EAGAIN},
    {"BUSY ", -EAGAIN},
    {"MASTERDOWN", -EAGAIN},
    {"TRYAGAIN", -EAGAIN},
    {"CLUSTERDOWN", -EAGAIN},
    {"ERR max number of clients", -EAGAIN},
    {"OOM", -ENOSPC},
    {"MISCONF", -ENOSPC},
    {"READONLY", -EROFS},
};

int redis_status_of(const char *text)
{
    for (size_t i = 0; i < MK_COUNT_OF(errors); i++)
        if (strncmp(text, errors[i].begin, strlen(errors[i].begin)) == 0)
            return errors[i].err;
    return -EREMOTEIO;
}

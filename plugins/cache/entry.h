// SPDX-License-Identifier: Apache-2.0
/*
 * An entry of the cache: what a name below a root is. It is the data of an item of the store, and does not change but
 * for its atomic members.
 */
#ifndef CACHE_ENTRY_H
#define CACHE_ENTRY_H

#include <monkey/file_cache.h>
#include <monkey/kit/store.h>

#include <stdatomic.h>
#include <sys/stat.h>

/* The kinds of items in the store. */
enum entry_kind {
    ENTRY_BODY,       /* a file whose bytes are in memory */
    ENTRY_DESCRIPTOR, /* a file that is open */
    ENTRY_FOLDER,
    ENTRY_MISSING, /* a name that does not exist, or may not be read */
    ENTRY_KINDS,
};

/* What tells one version of a file from another. */
struct file_identity {
    uint64_t device, inode, bytes;
    int64_t mtime_seconds, ctime_seconds;
    uint32_t mtime_nanoseconds, ctime_nanoseconds;
};

struct entry {
    struct file_identity id;        /* not of ENTRY_MISSING */
    uint64_t version;               /* of mk_file_version(); 0: the tag is weak */
    struct mk_response_block block; /* of files */
    uint64_t loaded_ms;             /* when the name was opened, by the clock of loops */
    _Atomic uint64_t checked_ms;    /* when it was last revalidated */
    _Atomic uint64_t number;        /* of its place then */
    int fd;                         /* DESCRIPTOR, else -1 */
    int16_t err;                    /* MISSING: ENOENT, ENOTDIR or EACCES */
    _Atomic bool used;              /* DESCRIPTOR: since the last sweep */
    _Atomic bool checking;          /* a disk thread revalidates it */
    bool has_other_names;           /* the file may be changed by a name that is not watched */
    uint8_t idle_sweeps;            /* DESCRIPTOR: under the lock of the store's part */
    _Atomic uint32_t place;         /* of the name (notify.h); written before `number` */
    _Atomic uint32_t hits;          /* how often it has answered; an estimate above ENTRY_HITS_EXACT */
    char bytes[];                   /* the text of the block, then the body */
};

enum { ENTRY_HITS_EXACT = 64 };

/* The bytes of an entry without its body, with the key and the head of the item; names of usual length. */
enum { ENTRY_HEAD_BYTES_MAX = 1024 };

/* Files with longer names are not kept: a key lies on the stack of each lookup. */
enum { ENTRY_NAME_BYTES_MAX = 1024 };

/*
 * A key: what was opened, and what decides the lines of the head. All of it is compared. Clients choose the name only,
 * so the keyed hash is that of inode and name; the rest is mixed in.
 */
struct entry_key {
    uint64_t hash;
    size_t len;
    struct entry_key_bytes {
        uint64_t device, mount, types;
        uint8_t policy, coding;
        bool no_ranges, no_version;
        uint32_t name_len;
        uint64_t inode;
        char name[ENTRY_NAME_BYTES_MAX]; /* `name_len` of them */
    } bytes;
};

static inline struct entry *entry_of(const struct mk_item *item)
{
    return mk_item_data(item);
}

/* Returns the key of an entry, which has only `name_len` bytes of the name. */
static inline const struct entry_key_bytes *entry_key_of(const struct mk_item *item)
{
    return mk_item_key(item);
}

/* Returns the name of a kind of entries. */
const char *entry_kind_name(unsigned kind);

/* Makes the key of a name; inline, for the sake of hits. Returns false if the name is too long. */
static inline bool entry_make_key(struct entry_key *key, const struct mk_store *store, const struct mk_file_name *name,
                                  uint64_t types)
{
    if (name->name.len > sizeof(key->bytes.name))
        return false;
    key->bytes.device = name->device;
    key->bytes.mount = name->mount;
    key->bytes.inode = name->inode;
    key->bytes.types = types;
    key->bytes.policy = name->policy;
    key->bytes.coding = name->coding;
    key->bytes.no_ranges = name->no_ranges;
    key->bytes.no_version = name->no_version;
    key->bytes.name_len = (uint32_t)name->name.len;
    memcpy(key->bytes.name, name->name.p, name->name.len);
    key->len = offsetof(struct entry_key, bytes.name) - offsetof(struct entry_key, bytes) + name->name.len;
    uint64_t rest = name->device ^ types ^ name->mount << 32 ^ (uint64_t)name->policy << 24 ^
                    (uint64_t)name->coding << 16 ^ (uint64_t)name->no_version << 8 ^ name->no_ranges;
    key->hash = mk_store_hash(store, &key->bytes.inode, sizeof(key->bytes.inode) + name->name.len) ^
                rest * UINT64_C(0x9e3779b97f4a7c15);
    return true;
}

struct file_identity entry_identify(const struct stat *st);
/* The same for what is open. Returns 0 or -errno. */
int entry_identify_fd(int fd, struct file_identity *ret_id);
bool entry_is_same(const struct file_identity *a, const struct file_identity *b);

/* Returns a file of that version, without a descriptor or content. */
struct mk_file entry_make_file(const struct file_identity *id);
/* Returns the file of an entry of the kinds BODY and DESCRIPTOR. */
struct mk_file entry_file(struct mk_item *item);
/* Returns a name that could not be opened. */
static inline struct mk_named_file entry_make_missing(int err)
{
    return (struct mk_named_file){.kind = MK_FILE_NONE, .err = err, .file = {.fd = -1}};
}

/* Releases what an entry owns: mk_store_kind.release. */
void entry_release(struct mk_item *item, void *ctx);

#endif

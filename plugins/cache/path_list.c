// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <monkey/base/arena.h>
#include <monkey/base/escape.h>

#include <errno.h>

/* Cuts the text before `end` off `rest`. */
/* ── queries and forms ── */

bool path_list_next_pair(struct mk_str *rest, struct path_list_pair *ret)
{
    struct mk_str pair = MK_STR("");
    while (rest->len && !pair.len)
        pair = mk_str_split(rest, '&');
    if (!pair.len)
        return false;
    ret->name = mk_str_split(&pair, '=');
    ret->value = pair;
    return true;
}

ssize_t path_list_decode(struct mk_str value, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        int c = (unsigned char)value.p[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            c = mk_percent_value(value.p + i, value.len - i);
            if (c < 0)
                return -EINVAL;
            i += 2;
        }
        if (n + 1 >= size)
            return -ENAMETOOLONG;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return (ssize_t)n;
}

/* ── lists ── */

static struct mk_str trim_blanks(struct mk_str s)
{
    static const char blanks[] = " \t\r\n";
    while (s.len && mk_is_one_of(*s.p, blanks))
        s = mk_str_after(s, 1);
    return mk_str_strip_end(s, blanks);
}

bool path_list_next_line(struct mk_str *rest, struct mk_str *ret)
{
    while (rest->len) {
        *ret = trim_blanks(mk_str_split(rest, '\n'));
        if (ret->len && *ret->p != '#')
            return true;
    }
    return false;
}

/* Returns what follows `mark` in `text`; `.p` NULL: it is not there. */
static struct mk_str find_behind(struct mk_str text, struct mk_str mark)
{
    const char *at = text.len ? memmem(text.p, text.len, mark.p, mark.len) : NULL;
    if (!at)
        return MK_STR_NONE;
    return mk_str(at + mark.len, text.len - (size_t)(at + mark.len - text.p));
}

bool path_list_next_location(struct mk_str *rest, struct mk_str *ret)
{
    struct mk_str begin = find_behind(*rest, MK_STR("<loc>"));
    struct mk_str behind = begin.p ? find_behind(begin, MK_STR("</loc>")) : MK_STR_NONE;
    if (!behind.p) {
        *rest = MK_STR("");
        return false;
    }
    *ret = trim_blanks(mk_str(begin.p, (size_t)(behind.p - begin.p) - sizeof("</loc>") + 1));
    *rest = behind;
    return true;
}

/* ── URLs ── */

/* Resolves the entities of XML that have names. Returns the length, or -ENAMETOOLONG. */
static ssize_t resolve_entities(struct mk_str text, char *out, size_t size)
{
    static const struct {
        struct mk_str name;
        char c;
    } entities[] = {{MK_STR_INIT("&amp;"), '&'},
                    {MK_STR_INIT("&lt;"), '<'},
                    {MK_STR_INIT("&gt;"), '>'},
                    {MK_STR_INIT("&quot;"), '"'},
                    {MK_STR_INIT("&apos;"), '\''}};
    size_t n = 0;
    while (text.len) {
        size_t i = 0, taken = 1;
        char c = *text.p;
        while (c == '&' && i < MK_COUNT_OF(entities) && !mk_str_starts(text, entities[i].name))
            i++;
        if (c == '&' && i < MK_COUNT_OF(entities)) {
            c = entities[i].c;
            taken = entities[i].name.len;
        }
        if (n == size)
            return -ENAMETOOLONG;
        out[n++] = c;
        text = mk_str_after(text, taken);
    }
    return (ssize_t)n;
}

/* Returns the length of "http://" or "https://" at the beginning, or 0. */
static size_t get_scheme_len(struct mk_str url)
{
    static const struct mk_str schemes[] = {MK_STR_INIT("http://"), MK_STR_INIT("https://")};
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++)
        if (mk_str_istarts(url, schemes[i]))
            return schemes[i].len;
    return 0;
}

/* Returns the end of the host: where a port, the path or the query begins. */
static size_t find_host_end(struct mk_str text)
{
    size_t i = 0;
    bool in_brackets = text.len && text.p[0] == '[';
    for (; i < text.len && !strchr("/?#", text.p[i]) && (in_brackets || text.p[i] != ':'); i++)
        in_brackets &= text.p[i] != ']';
    return i;
}

int path_list_read(struct mk_str entry, bool is_xml, struct path_list_url *ret)
{
    if (entry.len >= sizeof(ret->storage))
        return -ENAMETOOLONG;
    ssize_t len = is_xml ? resolve_entities(entry, ret->storage, sizeof(ret->storage)) : (ssize_t)entry.len;
    if (len < 0)
        return (int)len;
    if (!is_xml && entry.len)
        memcpy(ret->storage, entry.p, entry.len);
    struct mk_str url = mk_str(ret->storage, (size_t)len);
    size_t scheme = get_scheme_len(url);
    struct mk_str rest = mk_str_after(url, scheme);
    ret->host = mk_str(rest.p, scheme ? find_host_end(rest) : 0);
    if (scheme && !ret->host.len)
        return -EINVAL;
    size_t at = scheme ? mk_str_until(rest, "/?#").len : 0;
    struct mk_str path = mk_str_until(mk_str_after(rest, at), "?#");
    if (scheme && !path.len)
        path = MK_STR("/");
    len = mk_path_normalize(path, ret->path, sizeof(ret->path));
    ret->path_len = len < 0 ? 0 : (size_t)len;
    return len < 0 ? (int)len : 0;
}

const char *path_list_error(int err)
{
    switch (err) {
    case -ENAMETOOLONG:
        return "the path is too long";
    case -ENOENT:
        return "the path has an encoded slash, which no file has";
    default:
        return "it is neither a path that begins with a slash nor an http URL";
    }
}

static void count_place(const struct mk_file_place *place, void *ctx)
{
    struct places *places = ctx;
    (void)place;
    places->size++;
}

static void keep_place(const struct mk_file_place *place, void *ctx)
{
    struct places *places = ctx;
    if (places->n < places->size)
        places->items[places->n++] = *place;
}

int places_read(struct places *places, const struct mk_host *host)
{
    *places = (struct places){.host = host, .server = mk_generation_file_server(mk_host_generation(host))};
    if (!places->server)
        return -ENOENT;
    places->server->each_place(host, count_place, places);
    places->items = mk_account_alloc(NULL, (places->size + 1) * sizeof(*places->items));
    if (!places->items)
        return -ENOMEM;
    places->server->each_place(host, keep_place, places);
    return 0;
}

void places_release(struct places *places)
{
    mk_account_free(NULL, places->items, (places->size + 1) * sizeof(*places->items));
    places->items = NULL;
    places->n = 0;
}

static bool has_entry(const struct mk_file_place *place, const struct entry_key_bytes *key)
{
    return place->inode == key->inode && place->device == key->device && place->mount == key->mount &&
           (!place->name.p || mk_str_eq(place->name, mk_str(key->name, key->name_len)));
}

/* Writes the path of a name below the place. Returns its length; 0: it is too long. */
static size_t write_path(const struct mk_file_place *place, const struct entry_key_bytes *key, char out[PATH_BYTES])
{
    size_t n = place->url.len, name_len = place->name.p ? 0 : key->name_len + 1;
    if (n + name_len >= PATH_BYTES)
        return 0;
    if (n)
        memcpy(out, place->url.p, n);
    if (name_len) {
        out[n++] = '/';
        memcpy(out + n, key->name, key->name_len);
        n += key->name_len;
    }
    out[n] = '\0';
    return n;
}

size_t places_find_path(const struct places *places, const struct entry_key_bytes *key, unsigned *at,
                        char out[PATH_BYTES])
{
    while (*at < places->n) {
        const struct mk_file_place *place = &places->items[(*at)++];
        size_t n = has_entry(place, key) ? write_path(place, key, out) : 0;
        if (n && !places->server->hides(places->host, mk_str(out, n)))
            return n;
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Media types by extension: the table and its lookup; files are not read. The names are those registered with IANA, if
 * there are any; text is UTF-8.
 *
 * The table contains no pointers, so that it needs no relocations and stays in shared, read-only pages: a row has
 * offsets into structs of strings.
 */
#include "http/message/mime.h"

#include <monkey/hash.h>

#include <assert.h>
#include <errno.h>

#define UTF8 "; charset=utf-8"
#define TYPES(X) \
    X(aac, "audio/aac") \
    X(aiff, "audio/x-aiff") \
    X(apk, "application/vnd.android.package-archive") \
    X(apng, "image/apng") \
    X(atom, "application/atom+xml") \
    X(audio_mp4, "audio/mp4") \
    X(audio_ogg, "audio/ogg") \
    X(avi, "video/x-msvideo") \
    X(avif, "image/avif") \
    X(bmp, "image/bmp") \
    X(br, "application/x-brotli") \
    X(bz2, "application/x-bzip2") \
    X(cer, "application/pkix-cert") \
    X(crt, "application/x-x509-ca-cert") \
    X(css, "text/css" UTF8) \
    X(csv, "text/csv" UTF8) \
    X(deb, "application/vnd.debian.binary-package") \
    X(dmg, "application/x-apple-diskimage") \
    X(doc, "application/msword") \
    X(docx, "application/vnd.openxmlformats-officedocument.wordprocessingml.document") \
    X(dtd, "application/xml-dtd") \
    X(eot, "application/vnd.ms-fontobject") \
    X(epub, "application/epub+zip") \
    X(exe, "application/vnd.microsoft.portable-executable") \
    X(flac, "audio/flac") \
    X(flv, "video/x-flv") \
    X(geojson, "application/geo+json") \
    X(gif, "image/gif") \
    X(glb, "model/gltf-binary") \
    X(gltf, "model/gltf+json") \
    X(gpx, "application/gpx+xml") \
    X(gzip, "application/gzip") \
    X(heic, "image/heic") \
    X(heif, "image/heif") \
    X(html, "text/html" UTF8) \
    X(ico, "image/vnd.microsoft.icon") \
    X(ics, "text/calendar" UTF8) \
    X(ipynb, "application/x-ipynb+json") \
    X(iso, "application/vnd.efi.iso") \
    X(jar, "application/java-archive") \
    X(javascript, "text/javascript" UTF8) \
    X(jpeg, "image/jpeg") \
    X(json, "application/json") \
    X(jsonld, "application/ld+json") \
    X(jxl, "image/jxl") \
    X(kml, "application/vnd.google-earth.kml+xml") \
    X(kmz, "application/vnd.google-earth.kmz") \
    X(m3u8, "application/vnd.apple.mpegurl") \
    X(m4s, "video/iso.segment") \
    X(md, "text/markdown" UTF8) \
    X(midi, "audio/midi") \
    X(mka, "audio/matroska") \
    X(mkv, "video/matroska") \
    X(mov, "video/quicktime") \
    X(mp3, "audio/mpeg") \
    X(mp4, "video/mp4") \
    X(mpd, "application/dash+xml") \
    X(mpeg, "video/mpeg") \
    X(msi, "application/x-msi") \
    X(obj, "model/obj") \
    X(octets, "application/octet-stream") \
    X(odg, "application/vnd.oasis.opendocument.graphics") \
    X(odp, "application/vnd.oasis.opendocument.presentation") \
    X(ods, "application/vnd.oasis.opendocument.spreadsheet") \
    X(odt, "application/vnd.oasis.opendocument.text") \
    X(ogv, "video/ogg") \
    X(ogx, "application/ogg") \
    X(otf, "font/otf") \
    X(pdf, "application/pdf") \
    X(pem, "application/x-pem-file") \
    X(png, "image/png") \
    X(postscript, "application/postscript") \
    X(ppt, "application/vnd.ms-powerpoint") \
    X(pptx, "application/vnd.openxmlformats-officedocument.presentationml.presentation") \
    X(psd, "image/vnd.adobe.photoshop") \
    X(rar, "application/vnd.rar") \
    X(rdf, "application/rdf+xml") \
    X(rpm, "application/x-rpm") \
    X(rss, "application/rss+xml") \
    X(rtf, "application/rtf") \
    X(sevenzip, "application/x-7z-compressed") \
    X(sql, "application/sql") \
    X(sqlite, "application/vnd.sqlite3") \
    X(srt, "application/x-subrip") \
    X(stl, "model/stl") \
    X(svg, "image/svg+xml") \
    X(tar, "application/x-tar") \
    X(text, "text/plain" UTF8) \
    X(tiff, "image/tiff") \
    X(toml, "application/toml") \
    X(torrent, "application/x-bittorrent") \
    X(ts, "video/mp2t") \
    X(tsv, "text/tab-separated-values" UTF8) \
    X(ttc, "font/collection") \
    X(ttf, "font/ttf") \
    X(usdz, "model/vnd.usdz+zip") \
    X(vcf, "text/vcard" UTF8) \
    X(video_3gpp, "video/3gpp") \
    X(video_3gpp2, "video/3gpp2") \
    X(vtt, "text/vtt" UTF8) \
    X(wasm, "application/wasm") \
    X(wav, "audio/wav") \
    X(weba, "audio/webm") \
    X(webm, "video/webm") \
    X(webmanifest, "application/manifest+json") \
    X(webp, "image/webp") \
    X(wgsl, "text/wgsl" UTF8) \
    X(woff, "font/woff") \
    X(woff2, "font/woff2") \
    X(xhtml, "application/xhtml+xml") \
    X(xls, "application/vnd.ms-excel") \
    X(xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet") \
    X(xml, "application/xml") \
    X(xslt, "application/xslt+xml") \
    X(xz, "application/x-xz") \
    X(yaml, "application/yaml") \
    X(zip, "application/zip") \
    X(zst, "application/zstd")

#define FIELD(name, text) char name[sizeof(text)];
#define VALUE(name, text) .name = text,

static const struct types {
    TYPES(FIELD)
} types = {TYPES(VALUE)};

/* Sorted by extension. */
#define EXTENSIONS(X) \
    X(3g2, video_3gpp2) \
    X(3gp, video_3gpp) \
    X(7z, sevenzip) \
    X(aac, aac) \
    X(ai, postscript) \
    X(aif, aiff) \
    X(aiff, aiff) \
    X(apk, apk) \
    X(apng, apng) \
    X(atom, atom) \
    X(avi, avi) \
    X(avif, avif) \
    X(bin, octets) \
    X(bmp, bmp) \
    X(br, br) \
    X(bz2, bz2) \
    X(c, text) \
    X(cer, cer) \
    X(cjs, javascript) \
    X(conf, text) \
    X(cpp, text) \
    X(crt, crt) \
    X(css, css) \
    X(csv, csv) \
    X(deb, deb) \
    X(diff, text) \
    X(dmg, dmg) \
    X(doc, doc) \
    X(docx, docx) \
    X(dtd, dtd) \
    X(eot, eot) \
    X(eps, postscript) \
    X(epub, epub) \
    X(exe, exe) \
    X(flac, flac) \
    X(flv, flv) \
    X(geojson, geojson) \
    X(gif, gif) \
    X(glb, glb) \
    X(gltf, gltf) \
    X(gpx, gpx) \
    X(gz, gzip) \
    X(h, text) \
    X(heic, heic) \
    X(heif, heif) \
    X(htm, html) \
    X(html, html) \
    X(ico, ico) \
    X(ics, ics) \
    X(ini, text) \
    X(ipynb, ipynb) \
    X(iso, iso) \
    X(jar, jar) \
    X(jfif, jpeg) \
    X(jpeg, jpeg) \
    X(jpg, jpeg) \
    X(js, javascript) \
    X(json, json) \
    X(jsonld, jsonld) \
    X(jxl, jxl) \
    X(kml, kml) \
    X(kmz, kmz) \
    X(log, text) \
    X(m3u8, m3u8) \
    X(m4a, audio_mp4) \
    X(m4s, m4s) \
    X(m4v, mp4) \
    X(map, json) \
    X(md, md) \
    X(mid, midi) \
    X(midi, midi) \
    X(mjs, javascript) \
    X(mka, mka) \
    X(mkv, mkv) \
    X(mov, mov) \
    X(mp3, mp3) \
    X(mp4, mp4) \
    X(mpd, mpd) \
    X(mpeg, mpeg) \
    X(mpg, mpeg) \
    X(msi, msi) \
    X(obj, obj) \
    X(odg, odg) \
    X(odp, odp) \
    X(ods, ods) \
    X(odt, odt) \
    X(oga, audio_ogg) \
    X(ogg, audio_ogg) \
    X(ogv, ogv) \
    X(ogx, ogx) \
    X(opus, audio_ogg) \
    X(otf, otf) \
    X(patch, text) \
    X(pdf, pdf) \
    X(pem, pem) \
    X(png, png) \
    X(ppt, ppt) \
    X(pptx, pptx) \
    X(ps, postscript) \
    X(psd, psd) \
    X(rar, rar) \
    X(rdf, rdf) \
    X(rpm, rpm) \
    X(rss, rss) \
    X(rtf, rtf) \
    X(sql, sql) \
    X(sqlite, sqlite) \
    X(srt, srt) \
    X(stl, stl) \
    X(svg, svg) \
    X(svgz, svg) \
    X(tar, tar) \
    X(tgz, gzip) \
    X(tif, tiff) \
    X(tiff, tiff) \
    X(toml, toml) \
    X(torrent, torrent) \
    X(ts, ts) \
    X(tsv, tsv) \
    X(ttc, ttc) \
    X(ttf, ttf) \
    X(txt, text) \
    X(usdz, usdz) \
    X(vcf, vcf) \
    X(vtt, vtt) \
    X(wasm, wasm) \
    X(wav, wav) \
    X(weba, weba) \
    X(webm, webm) \
    X(webmanifest, webmanifest) \
    X(webp, webp) \
    X(wgsl, wgsl) \
    X(woff, woff) \
    X(woff2, woff2) \
    X(xht, xhtml) \
    X(xhtml, xhtml) \
    X(xls, xls) \
    X(xlsx, xlsx) \
    X(xml, xml) \
    X(xsl, xslt) \
    X(xslt, xslt) \
    X(xz, xz) \
    X(yaml, yaml) \
    X(yml, yaml) \
    X(zip, zip) \
    X(zst, zst)

#define EXTENSION_FIELD(extension, name) char e_##extension[sizeof(#extension)];
#define EXTENSION_VALUE(extension, name) .e_##extension = #extension,
#define ROW(extension, name) \
    {offsetof(struct extensions, e_##extension), offsetof(struct types, name), sizeof(#extension) - 1, \
     sizeof(types.name) - 1},

static const struct extensions {
    EXTENSIONS(EXTENSION_FIELD)
} extensions = {EXTENSIONS(EXTENSION_VALUE)};

static const struct row {
    uint16_t extension_at, at;
    uint8_t extension_len, len;
} rows[] = {EXTENSIONS(ROW)};

/* Returns the extension of the last segment of a path, or an empty string. */
static struct mk_str get_extension(struct mk_str path)
{
    for (size_t i = path.len; i && path.p[i - 1] != '/'; i--)
        if (path.p[i - 1] == '.')
            return mk_str_after(path, i);
    return MK_STR_NONE;
}

/* Compares like memcmp, ignoring case; a prefix comes first. `b` must be lower case. */
static int compare_extension(struct mk_str a, const char *b, size_t b_len)
{
    for (size_t i = 0; i < a.len && i < b_len; i++) {
        int order = a.p[i] == b[i] ? 0 : (unsigned char)mk_lower(a.p[i]) - (unsigned char)b[i];
        if (order)
            return order;
    }
    return (a.len > b_len) - (a.len < b_len);
}

struct mk_str mk__mime_find_builtin(struct mk_str path)
{
    struct mk_str extension = get_extension(path);
    size_t low = 0, high = extension.len ? MK_COUNT_OF(rows) : 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct row *row = &rows[middle];
        int order = compare_extension(extension, (const char *)&extensions + row->extension_at, row->extension_len);
        if (order == 0)
            return mk_str((const char *)&types + row->at, row->len);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return MK_STR_NONE;
}

/* Finds an extension in the sorted pairs. Returns false if it is missing; `*ret_at` is where it belongs then. */
static bool find_pair(const struct mk__mime_pair *pairs, unsigned n, struct mk_str extension, unsigned *ret_at)
{
    unsigned low = 0, high = n;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = compare_extension(extension, pairs[middle].extension.p, pairs[middle].extension.len);
        if (order == 0) {
            *ret_at = middle;
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_at = low;
    return false;
}

static struct mk_str copy_lower(struct mk_arena *arena, struct mk_str s)
{
    char *p = mk_arena_alloc(arena, s.len);
    if (!p)
        return MK_STR_NONE;
    for (size_t i = 0; i < s.len; i++)
        p[i] = mk_lower(s.p[i]);
    return mk_str(p, s.len);
}

/* Adds a string and its length. */
static uint64_t add_to_hash(uint64_t hash, struct mk_str s)
{
    return mk_hash_add(mk_hash_add(hash, s.p, s.len), &s.len, sizeof(s.len));
}

static uint64_t hash_types(const struct mk__mime *m)
{
    uint64_t hash = add_to_hash(MK_HASH_EMPTY, m->fallback);
    for (unsigned i = 0; i < m->n; i++)
        hash = add_to_hash(add_to_hash(hash, m->pairs[i].extension), m->pairs[i].type);
    return hash;
}

int mk__mime_overlay_init(struct mk__mime *m, struct mk_arena *arena, const struct mk__mime_pair *pairs, unsigned n,
                          struct mk_str fallback)
{
    struct mk__mime_pair *sorted = mk_arena_alloc(arena, n * sizeof(*sorted));
    unsigned count = 0, at;

    *m = (struct mk__mime){.pairs = sorted, .fallback = mk_arena_dup(arena, fallback)};
    if (!sorted || !m->fallback.p)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        struct mk__mime_pair pair = {
            .extension = copy_lower(arena, pairs[i].extension),
            .type = mk_arena_dup(arena, pairs[i].type),
        };
        if (!pair.extension.p || !pair.type.p)
            return -ENOMEM;
        if (!find_pair(sorted, count, pair.extension, &at)) {
            assert(at <= count && count < n);
            memmove(sorted + at + 1, sorted + at, (count - at) * sizeof(*sorted));
            count++;
        }
        sorted[at] = pair;
    }
    m->n = count;
    m->id = MK_SMALL ? 0 : hash_types(m);
    return 0;
}

struct mk_str mk__mime_find(const struct mk__mime *m, struct mk_str path)
{
    unsigned at;
    if (m->n && find_pair(m->pairs, m->n, get_extension(path), &at))
        return m->pairs[at].type;
    struct mk_str type = mk__mime_find_builtin(path);
    return type.p ? type : m->fallback;
}

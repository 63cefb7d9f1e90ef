// SPDX-License-Identifier: Apache-2.0
/*
 * Media types. Responsible for the table (names as registered with IANA where there is one; text in UTF-8,
 * as nearly all text is today) and for looking an extension up; it never looks into a file.
 *
 * The table holds no pointers, so that it needs no relocation and stays in shared, read-only pages: a row
 * says where its type lies in one struct of strings.
 */
#include "http/mime.h"

#include <errno.h>

enum { EXTENSION_BYTES = 12 };

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

#define ROW(extension, name) \
    { \
        extension, offsetof(struct types, name), sizeof(types.name) - 1 \
    }

/* Sorted by extension. */
static const struct row {
    char extension[EXTENSION_BYTES]; /* padded with NULs */
    uint16_t at;
    uint8_t len;
} rows[] = {
    ROW("3g2", video_3gpp2), ROW("3gp", video_3gpp),
    ROW("7z", sevenzip),     ROW("aac", aac),
    ROW("ai", postscript),   ROW("aif", aiff),
    ROW("aiff", aiff),       ROW("apk", apk),
    ROW("apng", apng),       ROW("atom", atom),
    ROW("avi", avi),         ROW("avif", avif),
    ROW("bin", octets),      ROW("bmp", bmp),
    ROW("br", br),           ROW("bz2", bz2),
    ROW("c", text),          ROW("cer", cer),
    ROW("cjs", javascript),  ROW("conf", text),
    ROW("cpp", text),        ROW("crt", crt),
    ROW("css", css),         ROW("csv", csv),
    ROW("deb", deb),         ROW("diff", text),
    ROW("dmg", dmg),         ROW("doc", doc),
    ROW("docx", docx),       ROW("dtd", dtd),
    ROW("eot", eot),         ROW("eps", postscript),
    ROW("epub", epub),       ROW("exe", exe),
    ROW("flac", flac),       ROW("flv", flv),
    ROW("geojson", geojson), ROW("gif", gif),
    ROW("glb", glb),         ROW("gltf", gltf),
    ROW("gpx", gpx),         ROW("gz", gzip),
    ROW("h", text),          ROW("heic", heic),
    ROW("heif", heif),       ROW("htm", html),
    ROW("html", html),       ROW("ico", ico),
    ROW("ics", ics),         ROW("ini", text),
    ROW("ipynb", ipynb),     ROW("iso", iso),
    ROW("jar", jar),         ROW("jfif", jpeg),
    ROW("jpeg", jpeg),       ROW("jpg", jpeg),
    ROW("js", javascript),   ROW("json", json),
    ROW("jsonld", jsonld),   ROW("jxl", jxl),
    ROW("kml", kml),         ROW("kmz", kmz),
    ROW("log", text),        ROW("m3u8", m3u8),
    ROW("m4a", audio_mp4),   ROW("m4s", m4s),
    ROW("m4v", mp4),         ROW("map", json),
    ROW("md", md),           ROW("mid", midi),
    ROW("midi", midi),       ROW("mjs", javascript),
    ROW("mka", mka),         ROW("mkv", mkv),
    ROW("mov", mov),         ROW("mp3", mp3),
    ROW("mp4", mp4),         ROW("mpd", mpd),
    ROW("mpeg", mpeg),       ROW("mpg", mpeg),
    ROW("msi", msi),         ROW("obj", obj),
    ROW("odg", odg),         ROW("odp", odp),
    ROW("ods", ods),         ROW("odt", odt),
    ROW("oga", audio_ogg),   ROW("ogg", audio_ogg),
    ROW("ogv", ogv),         ROW("ogx", ogx),
    ROW("opus", audio_ogg),  ROW("otf", otf),
    ROW("patch", text),      ROW("pdf", pdf),
    ROW("pem", pem),         ROW("png", png),
    ROW("ppt", ppt),         ROW("pptx", pptx),
    ROW("ps", postscript),   ROW("psd", psd),
    ROW("rar", rar),         ROW("rdf", rdf),
    ROW("rpm", rpm),         ROW("rss", rss),
    ROW("rtf", rtf),         ROW("sql", sql),
    ROW("sqlite", sqlite),   ROW("srt", srt),
    ROW("stl", stl),         ROW("svg", svg),
    ROW("svgz", svg),        ROW("tar", tar),
    ROW("tgz", gzip),        ROW("tif", tiff),
    ROW("tiff", tiff),       ROW("toml", toml),
    ROW("torrent", torrent), ROW("ts", ts),
    ROW("tsv", tsv),         ROW("ttc", ttc),
    ROW("ttf", ttf),         ROW("txt", text),
    ROW("usdz", usdz),       ROW("vcf", vcf),
    ROW("vtt", vtt),         ROW("wasm", wasm),
    ROW("wav", wav),         ROW("weba", weba),
    ROW("webm", webm),       ROW("webmanifest", webmanifest),
    ROW("webp", webp),       ROW("wgsl", wgsl),
    ROW("woff", woff),       ROW("woff2", woff2),
    ROW("xht", xhtml),       ROW("xhtml", xhtml),
    ROW("xls", xls),         ROW("xlsx", xlsx),
    ROW("xml", xml),         ROW("xsl", xslt),
    ROW("xslt", xslt),       ROW("xz", xz),
    ROW("yaml", yaml),       ROW("yml", yaml),
    ROW("zip", zip),         ROW("zst", zst),
};

/* The extension of a path's last segment, empty without one. */
static struct mk_str extension_of(struct mk_str path)
{
    for (size_t i = path.len; i && path.p[i - 1] != '/'; i--)
        if (path.p[i - 1] == '.')
            return mk_str(path.p + i, path.len - i);
    return MK_STR_NONE;
}

struct mk_str mk__mime_lookup(struct mk_str path)
{
    struct mk_str extension = extension_of(path);
    char key[EXTENSION_BYTES] = "";
    size_t low = 0, high = sizeof(rows) / sizeof(rows[0]);

    if (!extension.len || extension.len >= sizeof(key))
        return MK_STR_NONE;
    for (size_t i = 0; i < extension.len; i++)
        if (!(key[i] = mk_lower(extension.p[i])))
            return MK_STR_NONE; /* would pass for padding */
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = memcmp(key, rows[middle].extension, sizeof(key));
        if (order == 0)
            return mk_str((const char *)&types + rows[middle].at, rows[middle].len);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return MK_STR_NONE;
}

/* memcmp order without case; a prefix comes first. `b` is in lower case. */
static int compare(struct mk_str a, struct mk_str b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        int order = (unsigned char)mk_lower(a.p[i]) - (unsigned char)b.p[i];
        if (order)
            return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

/* The place of an extension among the sorted pairs; whether it is there. */
static bool find_pair(const struct mk__mime_pair *pairs, unsigned n, struct mk_str extension, unsigned *ret_at)
{
    unsigned low = 0, high = n;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = compare(extension, pairs[middle].extension);
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
            memmove(sorted + at + 1, sorted + at, (count - at) * sizeof(*sorted));
            count++;
        }
        sorted[at] = pair;
    }
    m->n = count;
    return 0;
}

struct mk_str mk__mime_of(const struct mk__mime *m, struct mk_str path)
{
    unsigned at;
    if (m->n && find_pair(m->pairs, m->n, extension_of(path), &at))
        return m->pairs[at].type;
    struct mk_str type = mk__mime_lookup(path);
    return type.p ? type : m->fallback;
}

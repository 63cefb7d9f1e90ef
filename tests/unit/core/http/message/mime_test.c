// SPDX-License-Identifier: Apache-2.0
/* Media types: the built-in table and the overlay of a configuration. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "http/message/mime.h"

struct row {
    const char *path, *type; /* type NULL: none */
};

static const struct row builtin[] = {
    {"index.html", "text/html; charset=utf-8"},
    {"/a/INDEX.HTM", "text/html; charset=utf-8"},
    {"/FILE.JPG", "image/jpeg"},
    {"/a.tar.gz", "application/gzip"},
    {"/a.b/c.css", "text/css; charset=utf-8"},
    {"/x.js", "text/javascript; charset=utf-8"},
    {"/x.mjs", "text/javascript; charset=utf-8"},
    {"/x.json", "application/json"},
    {"/x.map", "application/json"},
    {"/x.svg", "image/svg+xml"},
    {"/x.xml", "application/xml"},
    {"/x.md", "text/markdown; charset=utf-8"},
    {"/x.txt", "text/plain; charset=utf-8"},
    {"/x.woff2", "font/woff2"},
    {"/x.webp", "image/webp"},
    {"/x.avif", "image/avif"},
    {"/x.mp4", "video/mp4"},
    {"/x.wasm", "application/wasm"},
    {"/x.ts", "video/mp2t"},
    {"/x.7z", "application/x-7z-compressed"},
    {"/x.3g2", "video/3gpp2"},
    {"/x.zst", "application/zstd"},
    {"/x.webmanifest", "application/manifest+json"},
    {"/x.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"/.css", "text/css; charset=utf-8"},
    {"", NULL},
    {"/", NULL},
    {"/README", NULL},
    {"/a.html/b", NULL},
    {"/a.html/", NULL},
    {"/x.", NULL},
    {"/x..", NULL},
    {"/x.html.", NULL},
    {"/x.htm l", NULL},
    {"/x.ht", NULL},
    {"/x.htmlx", NULL},
    {"/x.webmanifestx", NULL},
    {"/x.0", NULL},
    {"/x.zzz", NULL},
    {"/x.\xff\xff", NULL},
};

TEST(looks_up)
{
    for (size_t i = 0; i < COUNT(builtin); i++) {
        size_t len = strlen(builtin[i].path);
        char *bytes = mk_test_guarded(builtin[i].path, len);
        struct mk_str type = mk__mime_find_builtin(mk_str(bytes, len));
        assert_str_equal(type, builtin[i].type);
        assert_int_equal(type.p != NULL, builtin[i].type != NULL);
        if (type.p)
            assert_int_equal(strlen(type.p), type.len);
        mk_test_unguard(bytes, len);
    }
    assert_null(mk__mime_find_builtin(mk_str("a.js\0n", 6)).p);
    assert_null(mk__mime_find_builtin(mk_str("a.js\0", 5)).p);
}

static const char *const extensions =
    "3g2 3gp 7z aac ai aif aiff apk apng atom avi avif bin bmp br bz2 c cer cjs conf cpp crt css csv deb diff dmg doc "
    "docx dtd eot eps epub exe flac flv geojson gif glb gltf gpx gz h heic heif htm html ico ics ini ipynb iso jar "
    "jfif "
    "jpeg jpg js json jsonld jxl kml kmz log m3u8 m4a m4s m4v map md mid midi mjs mka mkv mov mp3 mp4 mpd mpeg mpg msi "
    "obj odg odp ods odt oga ogg ogv ogx opus otf patch pdf pem png ppt pptx ps psd rar rdf rpm rss rtf sql sqlite srt "
    "stl svg svgz tar tgz tif tiff toml torrent ts tsv ttc ttf txt usdz vcf vtt wasm wav weba webm webmanifest webp "
    "wgsl woff woff2 xht xhtml xls xlsx xml xsl xslt xz yaml yml zip zst";

/* What programs go by, so that another type is of no use: proxies, certificates, signatures, installers ... */
static const char *const used_types[][2] = {
    {"/wpad.pac", "application/x-ns-proxy-autoconfig"},
    {"/ca.crl", "application/pkix-crl"},
    {"/a.p12", "application/pkcs12"},
    {"/a.p7s", "application/pkcs7-signature"},
    {"/a.asc", "application/pgp-keys"},
    {"/a.sig", "application/pgp-signature"},
    {"/a.xpi", "application/x-xpinstall"},
    {"/a.crx", "application/x-chrome-extension"},
    {"/a.jnlp", "application/x-java-jnlp-file"},
    {"/a.mobileconfig", "application/x-apple-aspen-config"},
    {"/a.pkpass", "application/vnd.apple.pkpass"},
    {"/a.appcache", "text/cache-manifest; charset=utf-8"},
    {"/a.m3u", "audio/mpegurl"},
    {"/a.xspf", "application/xspf+xml"},
    {"/a.meta4", "application/metalink4+xml"},
    {"/a.zsync", "application/x-zsync"},
    {"/a.ttl", "text/turtle; charset=utf-8"},
    {"/a.mml", "application/mathml+xml"},
};

TEST(types_that_programs_use)
{
    for (size_t i = 0; i < COUNT(used_types); i++)
        assert_str_equal(mk__mime_find_builtin(mk_str_c(used_types[i][0])), used_types[i][1]);
}

/* Extensions with another type than Debian's table has, and why. */
static const char *const others[] = {
    "c",   "cpp", "h",   "diff", "patch", /* browsers show text/plain, and save other texts */
    "exe", "dll",                         /* registered with IANA since */
    "iso", "mkv",                         /* likewise */
    "mid",                                /* audio/midi is what players know */
    "pem", "rpm", "rss", "srt",  "tgz",   /* as browsers and other servers have them */
    "ts",                                 /* video, not translations of Qt */
    "wav",                                /* audio/wav in the standard of browsers */
};

static bool is_other(struct mk_str extension)
{
    size_t i = 0;
    while (i < COUNT(others) && !mk_str_eq(extension, mk_str_c(others[i])))
        i++;
    return i < COUNT(others);
}

/* Checks the extensions of a line; those that have no type here are left out. Returns how many had one. */
static unsigned compare_line(char *line, const char *all)
{
    char *rest = NULL, *type = strtok_r(line, " \t\n", &rest), path[80], same[200];
    unsigned n = 0;
    for (char *e = type && type[0] != '#' ? strtok_r(NULL, " \t\n", &rest) : NULL; e;
         e = strtok_r(NULL, " \t\n", &rest)) {
        snprintf(path, sizeof(path), "/x.%s", e);
        struct mk_str found = mk_str_until(mk__mime_find_builtin(mk_str_c(path)), ";");
        if (!found.len || strchr(e, '.') || is_other(mk_str_c(e)))
            continue;
        n++;
        if (mk_str_ieq(found, mk_str_c(type)))
            continue;
        snprintf(same, sizeof(same), "\n%.*s\t", (int)found.len, found.p); /* one extension may have several */
        const char *line_of = strcasestr(all, same);
        const char *end = line_of ? strchr(line_of + 1, '\n') : NULL;
        const char *again = line_of ? strcasestr(line_of, e) : NULL;
        if (!again || again > end)
            fail_msg("%s is %s in Debian's table, and %.*s here", e, type, (int)found.len, found.p);
    }
    return n;
}

/* With the package media-types installed. */
TEST(types_of_debian)
{
    static char all[256 * 1024];
    char line[2048];
    unsigned n = 0;
    FILE *file = fopen("/etc/mime.types", "re");
    if (!file)
        skip();
    all[fread(all, 1, sizeof(all) - 1, file)] = '\0';
    rewind(file);
    while (fgets(line, sizeof(line), file))
        n += compare_line(line, all);
    fclose(file);
    assert_true(n > 150);
}

/* Each row is found (so the table is sorted), text has a charset, and nothing else has. */
TEST(every_row)
{
    unsigned n = 0;
    for (const char *p = extensions; *p; n++) {
        char path[32] = "/a.";
        size_t len = strcspn(p, " ");
        memcpy(path + 3, p, len);
        struct mk_str type = mk__mime_find_builtin(mk_str(path, len + 3));
        if (!type.len)
            fail_msg("%s has no type", path);
        assert_non_null(memchr(type.p, '/', type.len));
        bool text = mk_str_starts(type, MK_STR("text/"));
        assert_int_equal(strstr(type.p, "; charset=utf-8") != NULL, text);
        p += len + (p[len] == ' ');
    }
    assert_int_equal(n, 146);
}

static const struct mk__mime_pair pairs[] = {
    {{"TXT", 3}, {"text/plain; charset=latin1", 26}},
    {{"gemini", 6}, {"text/first", 10}},
    {{"a", 1}, {"x/a", 3}},
    {{"Gemini", 6}, {"text/gemini", 11}},
    {{"averylongextension", 18}, {"x/long", 6}},
    {{"gem", 3}, {"x/gem", 5}},
};

static const struct row overlaid[] = {
    {"/a.txt", "text/plain; charset=latin1"},
    {"/a.Txt", "text/plain; charset=latin1"},
    {"/a.GEMINI", "text/gemini"},
    {"/a.gem", "x/gem"},
    {"/a.a", "x/a"},
    {"/a.AveryLongExtension", "x/long"},
    {"/a.html", "text/html; charset=utf-8"},
    {"/a.gemi", "application/x-default"},
    {"/a", "application/x-default"},
    {"/a.txt/b", "application/x-default"},
};

TEST(overlays)
{
    struct mk_arena arena;
    struct mk__mime m;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_int_equal(mk__mime_overlay_init(&m, &arena, pairs, COUNT(pairs), MK_STR("application/x-default")), 0);
    assert_int_equal(m.n, COUNT(pairs) - 1);
    for (size_t i = 0; i < COUNT(overlaid); i++)
        assert_str_equal(mk__mime_find(&m, mk_str_c(overlaid[i].path)), overlaid[i].type);
    mk_arena_release(&arena);
}

TEST(an_empty_overlay)
{
    struct mk_arena arena;
    struct mk__mime m;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_int_equal(mk__mime_overlay_init(&m, &arena, NULL, 0, MK_STR_NONE), 0);
    assert_str_equal(mk__mime_find(&m, MK_STR("/a.css")), "text/css; charset=utf-8");
    assert_str_equal(mk__mime_find(&m, MK_STR("/a")), "");
    mk_arena_release(&arena);
}

static uint64_t get_id(const struct mk__mime_pair *list, unsigned n, struct mk_str fallback)
{
    struct mk_arena arena;
    struct mk__mime m;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_int_equal(mk__mime_overlay_init(&m, &arena, list, n, fallback), 0);
    mk_arena_release(&arena);
    return m.id;
}

/* Tables with the same types have the same number, in whatever order they are written. */
TEST(ids)
{
    const struct mk__mime_pair ab[] = {{MK_STR("a"), MK_STR("x/1")}, {MK_STR("b"), MK_STR("x/2")}};
    const struct mk__mime_pair ba[] = {ab[1], ab[0]};
    const struct mk__mime_pair moved[] = {{MK_STR("a"), MK_STR("x/1b")}, {MK_STR(""), MK_STR("x/2")}};
    uint64_t id = get_id(ab, 2, MK_STR("x/y"));
    assert_true(get_id(ba, 2, MK_STR("x/y")) == id);
    assert_true(get_id(ab, 1, MK_STR("x/y")) != id);
    assert_true(get_id(ab, 2, MK_STR("x/z")) != id);
    assert_true(get_id(moved, 2, MK_STR("x/y")) != id);
}

/* The arena's limit in place of the heap: every size fails cleanly until one is enough. */
TEST(little_memory)
{
    size_t bytes = 0;
    int err = -ENOMEM;
    for (; err; bytes += 16) {
        struct mk_arena arena;
        struct mk__mime m;
        mk_arena_init(&arena, NULL, bytes, NULL, 0);
        err = mk__mime_overlay_init(&m, &arena, pairs, COUNT(pairs), MK_STR("x/y"));
        assert_true(err == 0 || err == -ENOMEM);
        assert_int_equal(m.n, err ? 0 : 5);
        assert_str_equal(mk__mime_find(&m, MK_STR("/a.gem")), err ? (m.fallback.p ? "x/y" : "") : "x/gem");
        mk_arena_release(&arena);
    }
    assert_in_range(bytes, 200, 1024);
}

static int init_overlay(void *ctx)
{
    struct mk_arena arena;
    struct mk__mime m;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    int err = mk__mime_overlay_init(&m, &arena, pairs, COUNT(pairs), MK_STR("x/y"));
    mk_arena_release(&arena);
    return err;
}

TEST(failing_allocations)
{
    assert_int_equal(mk_test_failing_allocs(init_overlay, NULL), 1);
}

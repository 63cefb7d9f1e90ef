// SPDX-License-Identifier: Apache-2.0
/* Media types: the built-in table and the overlay of a configuration. */
#include "testing.h"

#include <errno.h>

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

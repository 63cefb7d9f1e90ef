// SPDX-License-Identifier: Apache-2.0
/*
 * Media types by extension: the table and its lookup; files are not read. The names are those registered with IANA, if
 * there are any; text is UTF-8.
 *
 * The table contains no pointers, so that it needs no relocations and stays in shared, read-only pages: a row has
 * offsets into structs of strings.
 */
#include "http/message/mime.h"

#include <monkey/base/hash.h>

#include <assert.h>
#include <errno.h>

#define UTF8 "; charset=utf-8"
#define TYPES(X) \
    X(aac, "audio/aac") \
    X(aiff, "audio/x-aiff") \
    X(amr, "audio/AMR") \
    X(apk, "application/vnd.android.package-archive") \
    X(apng, "image/apng") \
    X(appcache, "text/cache-manifest" UTF8) \
    X(appx, "application/appx") \
    X(asc, "application/pgp-keys") \
    X(asf, "application/vnd.ms-asf") \
    X(atom, "application/atom+xml") \
    X(au, "audio/basic") \
    X(audio_mp4, "audio/mp4") \
    X(audio_ogg, "audio/ogg") \
    X(avcs, "image/avcs") \
    X(avi, "video/x-msvideo") \
    X(avif, "image/avif") \
    X(azw3, "application/vnd.amazon.mobi8-ebook") \
    X(bib, "text/x-bibtex" UTF8) \
    X(bmp, "image/bmp") \
    X(br, "application/x-brotli") \
    X(bz2, "application/x-bzip2") \
    X(cab, "application/vnd.ms-cab-compressed") \
    X(cbor, "application/cbor") \
    X(cbr, "application/vnd.comicbook-rar") \
    X(cbz, "application/vnd.comicbook+zip") \
    X(cer, "application/pkix-cert") \
    X(class, "application/java-vm") \
    X(cpio, "application/x-cpio") \
    X(crl, "application/pkix-crl") \
    X(crt, "application/x-x509-ca-cert") \
    X(crx, "application/x-chrome-extension") \
    X(css, "text/css" UTF8) \
    X(csv, "text/csv" UTF8) \
    X(dcm, "application/dicom") \
    X(deb, "application/vnd.debian.binary-package") \
    X(djvu, "image/vnd.djvu") \
    X(dmg, "application/x-apple-diskimage") \
    X(doc, "application/msword") \
    X(docm, "application/vnd.ms-word.document.macroEnabled.12") \
    X(docx, "application/vnd.openxmlformats-officedocument.wordprocessingml.document") \
    X(dotx, "application/vnd.openxmlformats-officedocument.wordprocessingml.template") \
    X(dtd, "application/xml-dtd") \
    X(dvi, "application/x-dvi") \
    X(emf, "image/emf") \
    X(eml, "message/rfc822") \
    X(eot, "application/vnd.ms-fontobject") \
    X(epub, "application/epub+zip") \
    X(exe, "application/vnd.microsoft.portable-executable") \
    X(flac, "audio/flac") \
    X(flv, "video/x-flv") \
    X(geojson, "application/geo+json") \
    X(gif, "image/gif") \
    X(glb, "model/gltf-binary") \
    X(gltf, "model/gltf+json") \
    X(gml, "application/gml+xml") \
    X(gpx, "application/gpx+xml") \
    X(gzip, "application/gzip") \
    X(hdf, "application/x-hdf") \
    X(hdr, "image/vnd.radiance") \
    X(heic, "image/heic") \
    X(heics, "image/heic-sequence") \
    X(heif, "image/heif") \
    X(heifs, "image/heif-sequence") \
    X(hqx, "application/mac-binhex40") \
    X(html, "text/html" UTF8) \
    X(ico, "image/vnd.microsoft.icon") \
    X(ics, "text/calendar" UTF8) \
    X(ipynb, "application/x-ipynb+json") \
    X(iso, "application/vnd.efi.iso") \
    X(jar, "application/java-archive") \
    X(javascript, "text/javascript" UTF8) \
    X(jng, "image/x-jng") \
    X(jnlp, "application/x-java-jnlp-file") \
    X(jp2, "image/jp2") \
    X(jpeg, "image/jpeg") \
    X(jpx, "image/jpx") \
    X(json, "application/json") \
    X(jsonl, "application/jsonl") \
    X(jsonld, "application/ld+json") \
    X(jxl, "image/jxl") \
    X(jxr, "image/jxr") \
    X(jxs, "image/jxs") \
    X(kml, "application/vnd.google-earth.kml+xml") \
    X(kmz, "application/vnd.google-earth.kmz") \
    X(ktx2, "image/ktx2") \
    X(latex, "application/x-latex") \
    X(lzma, "application/x-lzma") \
    X(m3u, "audio/mpegurl") \
    X(m3u8, "application/vnd.apple.mpegurl") \
    X(m4s, "video/iso.segment") \
    X(mbox, "application/mbox") \
    X(md, "text/markdown" UTF8) \
    X(meta4, "application/metalink4+xml") \
    X(metalink, "application/metalink+xml") \
    X(midi, "audio/midi") \
    X(mka, "audio/matroska") \
    X(mkv, "video/matroska") \
    X(mml, "application/mathml+xml") \
    X(mng, "video/x-mng") \
    X(mobileconfig, "application/x-apple-aspen-config") \
    X(mov, "video/quicktime") \
    X(mp3, "audio/mpeg") \
    X(mp4, "video/mp4") \
    X(mpd, "application/dash+xml") \
    X(mpeg, "video/mpeg") \
    X(mpp, "application/vnd.ms-project") \
    X(msi, "application/x-msi") \
    X(msix, "application/msix") \
    X(n3, "text/n3" UTF8) \
    X(nc, "application/x-netcdf") \
    X(ndjson, "application/x-ndjson") \
    X(nq, "application/n-quads") \
    X(nt, "application/n-triples") \
    X(obj, "model/obj") \
    X(octets, "application/octet-stream") \
    X(odf, "application/vnd.oasis.opendocument.formula") \
    X(odg, "application/vnd.oasis.opendocument.graphics") \
    X(odp, "application/vnd.oasis.opendocument.presentation") \
    X(ods, "application/vnd.oasis.opendocument.spreadsheet") \
    X(odt, "application/vnd.oasis.opendocument.text") \
    X(ogv, "video/ogg") \
    X(ogx, "application/ogg") \
    X(otf, "font/otf") \
    X(otp, "application/vnd.oasis.opendocument.presentation-template") \
    X(ots, "application/vnd.oasis.opendocument.spreadsheet-template") \
    X(ott, "application/vnd.oasis.opendocument.text-template") \
    X(oxps, "application/oxps") \
    X(p10, "application/pkcs10") \
    X(p12, "application/pkcs12") \
    X(p7b, "application/pkcs7-mime") \
    X(p7r, "application/x-pkcs7-certreqresp") \
    X(p7s, "application/pkcs7-signature") \
    X(p8, "application/pkcs8") \
    X(pac, "application/x-ns-proxy-autoconfig") \
    X(pdf, "application/pdf") \
    X(pem, "application/x-pem-file") \
    X(pgp, "application/pgp-encrypted") \
    X(pkpass, "application/vnd.apple.pkpass") \
    X(pls, "audio/x-scpls") \
    X(png, "image/png") \
    X(postscript, "application/postscript") \
    X(potx, "application/vnd.openxmlformats-officedocument.presentationml.template") \
    X(ppsx, "application/vnd.openxmlformats-officedocument.presentationml.slideshow") \
    X(ppt, "application/vnd.ms-powerpoint") \
    X(pptm, "application/vnd.ms-powerpoint.presentation.macroEnabled.12") \
    X(pptx, "application/vnd.openxmlformats-officedocument.presentationml.presentation") \
    X(psd, "image/vnd.adobe.photoshop") \
    X(ra, "audio/x-pn-realaudio") \
    X(rar, "application/vnd.rar") \
    X(rdf, "application/rdf+xml") \
    X(rpm, "application/x-rpm") \
    X(rq, "application/sparql-query") \
    X(rss, "application/rss+xml") \
    X(rtf, "application/rtf") \
    X(sevenzip, "application/x-7z-compressed") \
    X(sig, "application/pgp-signature") \
    X(sit, "application/x-stuffit") \
    X(smil, "application/smil+xml") \
    X(sql, "application/sql") \
    X(sqlite, "application/vnd.sqlite3") \
    X(srt, "application/x-subrip") \
    X(srx, "application/sparql-results+xml") \
    X(stl, "model/stl") \
    X(svg, "image/svg+xml") \
    X(swf, "application/vnd.adobe.flash.movie") \
    X(tar, "application/x-tar") \
    X(tex, "text/x-tex" UTF8) \
    X(text, "text/plain" UTF8) \
    X(tiff, "image/tiff") \
    X(toml, "application/toml") \
    X(torrent, "application/x-bittorrent") \
    X(trig, "application/trig") \
    X(ts, "video/mp2t") \
    X(tsv, "text/tab-separated-values" UTF8) \
    X(ttc, "font/collection") \
    X(ttf, "font/ttf") \
    X(ttl, "text/turtle" UTF8) \
    X(ttml, "application/ttml+xml") \
    X(uri, "text/uri-list" UTF8) \
    X(usdz, "model/vnd.usdz+zip") \
    X(vcf, "text/vcard" UTF8) \
    X(vcs, "text/x-vcalendar" UTF8) \
    X(video_3gpp, "video/3gpp") \
    X(video_3gpp2, "video/3gpp2") \
    X(vsd, "application/vnd.visio") \
    X(vtt, "text/vtt" UTF8) \
    X(wasm, "application/wasm") \
    X(wav, "audio/wav") \
    X(wbmp, "image/vnd.wap.wbmp") \
    X(weba, "audio/webm") \
    X(webm, "video/webm") \
    X(webmanifest, "application/manifest+json") \
    X(webp, "image/webp") \
    X(wgsl, "text/wgsl" UTF8) \
    X(wma, "audio/x-ms-wma") \
    X(wmf, "image/wmf") \
    X(wmv, "video/x-ms-wmv") \
    X(woff, "font/woff") \
    X(woff2, "font/woff2") \
    X(wsdl, "application/wsdl+xml") \
    X(xhtml, "application/xhtml+xml") \
    X(xls, "application/vnd.ms-excel") \
    X(xlsb, "application/vnd.ms-excel.sheet.binary.macroEnabled.12") \
    X(xlsm, "application/vnd.ms-excel.sheet.macroEnabled.12") \
    X(xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet") \
    X(xltx, "application/vnd.openxmlformats-officedocument.spreadsheetml.template") \
    X(xml, "application/xml") \
    X(xpi, "application/x-xpinstall") \
    X(xps, "application/vnd.ms-xpsdocument") \
    X(xslt, "application/xslt+xml") \
    X(xspf, "application/xspf+xml") \
    X(xul, "application/vnd.mozilla.xul+xml") \
    X(xz, "application/x-xz") \
    X(yaml, "application/yaml") \
    X(zip, "application/zip") \
    X(zst, "application/zstd") \
    X(zsync, "application/x-zsync")

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
    X(aifc, aiff) \
    X(aiff, aiff) \
    X(amr, amr) \
    X(apk, apk) \
    X(apng, apng) \
    X(appcache, appcache) \
    X(appx, appx) \
    X(asc, asc) \
    X(asf, asf) \
    X(atom, atom) \
    X(au, au) \
    X(avcs, avcs) \
    X(avi, avi) \
    X(avif, avif) \
    X(azw3, azw3) \
    X(bib, bib) \
    X(bin, octets) \
    X(bmp, bmp) \
    X(br, br) \
    X(bz2, bz2) \
    X(c, text) \
    X(cab, cab) \
    X(cbor, cbor) \
    X(cbr, cbr) \
    X(cbz, cbz) \
    X(cer, cer) \
    X(cjs, javascript) \
    X(class, class) \
    X(conf, text) \
    X(cpio, cpio) \
    X(cpp, text) \
    X(crl, crl) \
    X(crt, crt) \
    X(crx, crx) \
    X(css, css) \
    X(csv, csv) \
    X(dcm, dcm) \
    X(ddeb, deb) \
    X(deb, deb) \
    X(der, crt) \
    X(diff, text) \
    X(djv, djvu) \
    X(djvu, djvu) \
    X(dll, exe) \
    X(dmg, dmg) \
    X(doc, doc) \
    X(docm, docm) \
    X(docx, docx) \
    X(dotx, dotx) \
    X(dtd, dtd) \
    X(dvi, dvi) \
    X(ear, jar) \
    X(emf, emf) \
    X(eml, eml) \
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
    X(gml, gml) \
    X(gpx, gpx) \
    X(gz, gzip) \
    X(h, text) \
    X(hdf, hdf) \
    X(hdr, hdr) \
    X(heic, heic) \
    X(heics, heics) \
    X(heif, heif) \
    X(heifs, heifs) \
    X(hqx, hqx) \
    X(htm, html) \
    X(html, html) \
    X(ico, ico) \
    X(ics, ics) \
    X(ifb, ics) \
    X(img, octets) \
    X(ini, text) \
    X(ipa, octets) \
    X(ipynb, ipynb) \
    X(iso, iso) \
    X(jar, jar) \
    X(jfif, jpeg) \
    X(jng, jng) \
    X(jnlp, jnlp) \
    X(jp2, jp2) \
    X(jpeg, jpeg) \
    X(jpf, jpx) \
    X(jpg, jpeg) \
    X(jpx, jpx) \
    X(js, javascript) \
    X(json, json) \
    X(jsonc, json) \
    X(jsonl, jsonl) \
    X(jsonld, jsonld) \
    X(jxl, jxl) \
    X(jxr, jxr) \
    X(jxs, jxs) \
    X(kml, kml) \
    X(kmz, kmz) \
    X(ktx2, ktx2) \
    X(latex, latex) \
    X(log, text) \
    X(lzma, lzma) \
    X(m2ts, ts) \
    X(m3u, m3u) \
    X(m3u8, m3u8) \
    X(m4a, audio_mp4) \
    X(m4b, audio_mp4) \
    X(m4s, m4s) \
    X(m4v, mp4) \
    X(map, json) \
    X(mbox, mbox) \
    X(md, md) \
    X(meta4, meta4) \
    X(metalink, metalink) \
    X(mid, midi) \
    X(midi, midi) \
    X(mjs, javascript) \
    X(mka, mka) \
    X(mkv, mkv) \
    X(mml, mml) \
    X(mng, mng) \
    X(mobileconfig, mobileconfig) \
    X(mov, mov) \
    X(mp2, mp3) \
    X(mp3, mp3) \
    X(mp4, mp4) \
    X(mpd, mpd) \
    X(mpeg, mpeg) \
    X(mpg, mpeg) \
    X(mpga, mp3) \
    X(mpp, mpp) \
    X(msi, msi) \
    X(msix, msix) \
    X(msp, octets) \
    X(n3, n3) \
    X(nc, nc) \
    X(ndjson, ndjson) \
    X(nq, nq) \
    X(nt, nt) \
    X(obj, obj) \
    X(odf, odf) \
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
    X(otp, otp) \
    X(ots, ots) \
    X(ott, ott) \
    X(owl, rdf) \
    X(oxps, oxps) \
    X(p10, p10) \
    X(p12, p12) \
    X(p7b, p7b) \
    X(p7c, p7b) \
    X(p7m, p7b) \
    X(p7r, p7r) \
    X(p7s, p7s) \
    X(p8, p8) \
    X(pac, pac) \
    X(patch, text) \
    X(pdf, pdf) \
    X(pem, pem) \
    X(pfx, p12) \
    X(pgp, pgp) \
    X(pkpass, pkpass) \
    X(pls, pls) \
    X(png, png) \
    X(potx, potx) \
    X(pps, ppt) \
    X(ppsx, ppsx) \
    X(ppt, ppt) \
    X(pptm, pptm) \
    X(pptx, pptx) \
    X(ps, postscript) \
    X(psd, psd) \
    X(qt, mov) \
    X(ra, ra) \
    X(rar, rar) \
    X(rdf, rdf) \
    X(rng, xml) \
    X(rpm, rpm) \
    X(rq, rq) \
    X(rss, rss) \
    X(rtf, rtf) \
    X(run, octets) \
    X(shtml, html) \
    X(sig, sig) \
    X(sit, sit) \
    X(smi, smil) \
    X(smil, smil) \
    X(snd, au) \
    X(spx, audio_ogg) \
    X(sql, sql) \
    X(sqlite, sqlite) \
    X(srt, srt) \
    X(srx, srx) \
    X(stl, stl) \
    X(svg, svg) \
    X(svgz, svg) \
    X(swf, swf) \
    X(tar, tar) \
    X(tbz2, bz2) \
    X(tex, tex) \
    X(tgz, gzip) \
    X(tif, tiff) \
    X(tiff, tiff) \
    X(toml, toml) \
    X(torrent, torrent) \
    X(trig, trig) \
    X(ts, ts) \
    X(tsv, tsv) \
    X(ttc, ttc) \
    X(ttf, ttf) \
    X(ttl, ttl) \
    X(ttml, ttml) \
    X(txt, text) \
    X(txz, xz) \
    X(udeb, deb) \
    X(uri, uri) \
    X(uris, uri) \
    X(usdz, usdz) \
    X(vcard, vcf) \
    X(vcf, vcf) \
    X(vcs, vcs) \
    X(vsd, vsd) \
    X(vtt, vtt) \
    X(war, jar) \
    X(wasm, wasm) \
    X(wav, wav) \
    X(wbmp, wbmp) \
    X(weba, weba) \
    X(webm, webm) \
    X(webmanifest, webmanifest) \
    X(webp, webp) \
    X(wgsl, wgsl) \
    X(wma, wma) \
    X(wmf, wmf) \
    X(wmv, wmv) \
    X(woff, woff) \
    X(woff2, woff2) \
    X(wsdl, wsdl) \
    X(xht, xhtml) \
    X(xhtml, xhtml) \
    X(xls, xls) \
    X(xlsb, xlsb) \
    X(xlsm, xlsm) \
    X(xlsx, xlsx) \
    X(xlt, xls) \
    X(xltx, xltx) \
    X(xml, xml) \
    X(xpi, xpi) \
    X(xps, xps) \
    X(xsd, xml) \
    X(xsl, xslt) \
    X(xslt, xslt) \
    X(xspf, xspf) \
    X(xul, xul) \
    X(xz, xz) \
    X(yaml, yaml) \
    X(yml, yaml) \
    X(zip, zip) \
    X(zst, zst) \
    X(zsync, zsync)

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
    m->id = hash_types(m);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * A table of extensions, and of names without one, in lower case and sorted by their bytes (kind.h).
 */
#include "kind.h"

enum kind { ARCHIVE, AUDIO, CODE, DOCUMENT, FONT, IMAGE, PROGRAM, TEXT, VIDEO };

enum { EXTENSION_BYTES = 12 };

static const struct mk_str names[] = {
    [ARCHIVE] = MK_STR("archive"),   [AUDIO] = MK_STR("audio"), [CODE] = MK_STR("code"),
    [DOCUMENT] = MK_STR("document"), [FONT] = MK_STR("font"),   [IMAGE] = MK_STR("image"),
    [PROGRAM] = MK_STR("program"),   [TEXT] = MK_STR("text"),   [VIDEO] = MK_STR("video"),
};

/* clang-format off */
static const struct {
    char extension[EXTENSION_BYTES];
    uint8_t kind;
} rows[] = {
    {"7z", ARCHIVE}, {"aac", AUDIO}, {"aiff", AUDIO}, {"apk", ARCHIVE}, {"apng", IMAGE}, {"appimage", PROGRAM},
    {"asc", TEXT}, {"authors", TEXT}, {"avi", VIDEO}, {"avif", IMAGE}, {"bash", CODE}, {"bat", PROGRAM},
    {"bin", PROGRAM}, {"bmp", IMAGE}, {"br", ARCHIVE}, {"bz2", ARCHIVE}, {"c", CODE}, {"cc", CODE}, {"cfg", TEXT},
    {"changelog", TEXT}, {"changes", TEXT}, {"cjs", CODE}, {"conf", TEXT}, {"copying", TEXT}, {"cpp", CODE},
    {"cs", CODE}, {"css", CODE}, {"csv", TEXT}, {"cxx", CODE}, {"deb", ARCHIVE}, {"diff", CODE}, {"dmg", ARCHIVE},
    {"doc", DOCUMENT}, {"dockerfile", CODE}, {"docx", DOCUMENT}, {"eot", FONT}, {"epub", DOCUMENT}, {"exe", PROGRAM},
    {"flac", AUDIO}, {"flv", VIDEO}, {"gif", IMAGE}, {"go", CODE}, {"gz", ARCHIVE}, {"h", CODE}, {"heic", IMAGE},
    {"heif", IMAGE}, {"hpp", CODE}, {"htm", CODE}, {"html", CODE}, {"ico", IMAGE}, {"img", ARCHIVE}, {"ini", TEXT},
    {"ipynb", CODE}, {"iso", ARCHIVE}, {"jar", ARCHIVE}, {"java", CODE}, {"jpeg", IMAGE}, {"jpg", IMAGE},
    {"js", CODE}, {"json", CODE}, {"jsx", CODE}, {"jxl", IMAGE}, {"kt", CODE}, {"license", TEXT}, {"log", TEXT},
    {"lua", CODE}, {"lz", ARCHIVE}, {"lz4", ARCHIVE}, {"m", CODE}, {"m3u8", VIDEO}, {"m4a", AUDIO}, {"m4v", VIDEO},
    {"makefile", CODE}, {"md", TEXT}, {"mid", AUDIO}, {"midi", AUDIO}, {"mjs", CODE}, {"mkv", VIDEO}, {"mov", VIDEO},
    {"mp3", AUDIO}, {"mp4", VIDEO}, {"mpeg", VIDEO}, {"mpg", VIDEO}, {"msi", PROGRAM}, {"odp", DOCUMENT},
    {"ods", DOCUMENT}, {"odt", DOCUMENT}, {"oga", AUDIO}, {"ogg", AUDIO}, {"ogv", VIDEO}, {"opus", AUDIO},
    {"otf", FONT}, {"patch", CODE}, {"pdf", DOCUMENT}, {"php", CODE}, {"pl", CODE}, {"png", IMAGE}, {"ppt", DOCUMENT},
    {"pptx", DOCUMENT}, {"ps", DOCUMENT}, {"psd", IMAGE}, {"py", CODE}, {"rar", ARCHIVE}, {"rb", CODE},
    {"readme", TEXT}, {"rpm", ARCHIVE}, {"rs", CODE}, {"rst", TEXT}, {"rtf", DOCUMENT}, {"sh", CODE},
    {"sha256sums", TEXT}, {"sql", CODE}, {"svg", IMAGE}, {"swift", CODE}, {"tar", ARCHIVE}, {"tex", CODE},
    {"tgz", ARCHIVE}, {"tif", IMAGE}, {"tiff", IMAGE}, {"toml", CODE}, {"ts", CODE}, {"tsx", CODE}, {"ttf", FONT},
    {"txt", TEXT}, {"wasm", PROGRAM}, {"wav", AUDIO}, {"webm", VIDEO}, {"webp", IMAGE}, {"woff", FONT},
    {"woff2", FONT}, {"xcf", IMAGE}, {"xls", DOCUMENT}, {"xlsx", DOCUMENT}, {"xml", CODE}, {"xz", ARCHIVE},
    {"yaml", CODE}, {"yml", CODE}, {"zip", ARCHIVE}, {"zst", ARCHIVE},
};
/* clang-format on */

/* Copies the extension in lower case, or the name if it has none. Returns false if that is empty or too long. */
static bool get_extension(struct mk_str name, char ret[EXTENSION_BYTES])
{
    const char *dot = name.len ? memrchr(name.p, '.', name.len) : NULL;
    const char *first = dot ? dot + 1 : name.p;
    size_t len = name.len - (size_t)(first - name.p);
    if (len == 0 || len >= EXTENSION_BYTES || dot == name.p)
        return false;
    for (size_t i = 0; i < len; i++)
        ret[i] = mk_lower(first[i]);
    ret[len] = '\0';
    return true;
}

struct mk_str kind_of(struct mk_str name)
{
    char extension[EXTENSION_BYTES];
    size_t low = 0, high = MK_COUNT_OF(rows);
    if (!get_extension(name, extension))
        return MK_STR("file");
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(extension, rows[middle].extension);
        if (order == 0)
            return names[rows[middle].kind];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return MK_STR("file");
}

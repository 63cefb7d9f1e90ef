// SPDX-License-Identifier: Apache-2.0
/*
 * main() of fuzz targets in builds without libFuzzer: runs the target over the files of the folders that are named, and
 * over beginnings of each, as a client that stops in the middle sends them. Each input has a heap block of its size, so
 * that a sanitizer reports a read behind its end.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INPUT_BYTES_MAX = 1 << 20, BEGINNINGS_MAX = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static void run_input(const char *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

/* Returns false if the file cannot be read. */
static bool run_file(const char *path)
{
    static char bytes[INPUT_BYTES_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        perror(path);
        return false;
    }
    for (unsigned i = 1; i < BEGINNINGS_MAX && len >= BEGINNINGS_MAX; i++)
        run_input(bytes, (size_t)len * i / BEGINNINGS_MAX);
    run_input(bytes, (size_t)len);
    return true;
}

/* Returns the number of files, or -1. */
static int run_folder(const char *path)
{
    int n = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && n >= 0 && (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        n = run_file(name) ? n + 1 : -1;
    }
    if (!folder)
        perror(path);
    else
        closedir(folder);
    return folder ? n : -1;
}

int main(int argc, char **argv)
{
    int files = 0;
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    run_input("", 0);
    for (int i = 1; i < argc; i++) {
        int n = run_folder(argv[i]);
        if (n <= 0)
            return EXIT_FAILURE;
        files += n;
    }
    printf("%d files\n", files);
    return EXIT_SUCCESS;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The listing as JSON (RFC 8259):
 *
 *     {"path":"/pub/","sort":"name","order":"asc","sorted":true,"entries":[
 *     {"name":"a b.txt","type":"file","bytes":12,"mtime":"2026-11-21T13:10:23Z","url":"/pub/a%20b.txt"},
 *     {"name":"c","type":"folder","bytes":null,"mtime":"2026-11-21T13:10:23Z","url":"/pub/c/"}]}
 *
 * `name` is text: bytes that are not UTF-8 are replaced by U+FFFD. `url` is exact. With "sorted":false the folder does
 * not fit into MaxListing, and the entries come in the order of the file system.
 */
#ifndef DIRLISTING_JSON_H
#define DIRLISTING_JSON_H

#include "folder.h"

extern const struct listing_format json_format;

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Sockets of Spawn, each in a folder that only this user may enter.
 */
#ifndef FASTCGI_SPAWN_SOCKET_H
#define FASTCGI_SPAWN_SOCKET_H

/* How the names of folders begin; the number of the process and a dash follow. */
#define SPAWN_SOCKET_PREFIX "monkey-fastcgi-"
#define SPAWN_SOCKET_NAME "/socket"

/*
 * Makes the folder, which must not exist, and listens at the socket in it. Removes folders that killed servers have
 * left next to it. Returns a descriptor or -errno.
 */
int spawn_socket_open(const char *folder);
/* Closes the socket, and removes both. */
void spawn_socket_close(const char *folder, int fd);
/* Removes folders that servers of this user have left in `parent`: nothing listens there, for a minute at least. */
void spawn_socket_sweep(const char *parent);

#endif

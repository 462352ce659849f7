/* Makes one call of the disk or the network fail: preload it, then call fault_arm.

   Calls that change a file under the folder (or, for the folder "socket", that send) are counted from 1.
   At number `at`: mode 1 kills the process before the call, 2 kills it after half of a write, 3 fails with an
   I/O error, 4 fails because the disk is full. FAULT_CLOCK moves the clock by so many seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];
static long at = -1, count, mode;

void fault_arm(const char *where, long number, long how) {
    strncpy(folder, where, sizeof folder - 1);
    count = 0;
    at = number;
    mode = how;
}

long fault_count(void) { return count; }

/* Whether the call must fail now; a path of NULL stands for a socket. */
static int fails(const char *path) {
    if (at < 0) return 0;
    if (path == NULL ? strcmp(folder, "socket") != 0 : strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (++count != at) return 0;
    if (mode == 1) kill(getpid(), SIGKILL);
    errno = mode == 4 ? ENOSPC : EIO;
    return 1;
}

static int file_fails(int fd) {
    char link[64], path[4096];
    if (at < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!file_fails(fd)) return real(fd, data, size);
    if (mode == 2) { real(fd, data, size / 2); kill(getpid(), SIGKILL); }
    return -1;
}

static ssize_t placed(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *data, size_t size, off_t offset) {
    if (!file_fails(fd)) return real(fd, data, size, offset);
    if (mode == 2) { real(fd, data, size / 2, offset); kill(getpid(), SIGKILL); }
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return placed(real, fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    return placed(real, fd, data, size, offset);
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return file_fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return file_fails(fd) ? -1 : real(fd);
}

int ftruncate(int fd, off_t size) {
    REAL(int, "ftruncate", int, off_t);
    return file_fails(fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off_t size) {
    REAL(int, "ftruncate64", int, off_t);
    return file_fails(fd) ? -1 : real(fd, size);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return fails(path) ? -1 : real(path);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return fails(from) ? -1 : real(from, to);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(ssize_t, "send", int, const void *, size_t, int);
    if (!fails(NULL)) return real(fd, data, size, flags);
    if (mode == 2) { real(fd, data, size / 2, flags); kill(getpid(), SIGKILL); }
    return -1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    const char *shift = getenv("FAULT_CLOCK");
    if (shift && clock == CLOCK_REALTIME) now->tv_sec += atol(shift);
    return result;
}

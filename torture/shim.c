/* Preloaded into a server or a command: the n-th write below a folder fails, or the clock is wrong.
 *
 * TORTURE_ROOT: the folder. TORTURE_CONTROL: a file that the harness maps as well (see shim.py).
 * Calls go straight to the kernel, so nothing has to be looked up while it starts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t countdown;  /* the call that fails: 1 is the next one; 0: none */
    int64_t error;      /* its errno; 0: half of a write is written */
    int64_t sticky;     /* whether all later calls fail as well, as on a full disk */
    int64_t calls;      /* seen so far */
    int64_t fired;      /* failed so far */
    int64_t clock;      /* seconds that the clock is ahead */
};

static struct control *control;
static char root[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("TORTURE_CONTROL"), *folder = getenv("TORTURE_ROOT");
    if (!name || !folder || !realpath(folder, root)) return;
    int file = open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED) control = mapped;
}

static int ours(int file) {
    char link[64], path[PATH_MAX];
    if (!control) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (length > 4 && !strcmp(path + length - 4, "-shm")) return 0;  /* memory that has a name */
    return strncmp(path, root, strlen(root)) == 0;
}

/* 0: go on. -1: fail with errno. 1: write half of it. */
static int verdict(int file) {
    if (!ours(file)) return 0;
    __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    int64_t armed = __atomic_load_n(&control->countdown, __ATOMIC_SEQ_CST);
    if (armed <= 0) return 0;
    if (armed > 1) {
        __atomic_sub_fetch(&control->countdown, 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    if (!control->sticky) __atomic_store_n(&control->countdown, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&control->fired, 1, __ATOMIC_SEQ_CST);
    if (!control->error) return 1;
    errno = (int)control->error;
    return -1;
}

static size_t half(size_t count) { return count > 1 ? count / 2 : count; }

ssize_t write(int file, const void *data, size_t count) {
    int said = verdict(file);
    return said < 0 ? -1 : syscall(SYS_write, file, data, said ? half(count) : count);
}
ssize_t pwrite64(int file, const void *data, size_t count, off64_t offset) {
    int said = verdict(file);
    return said < 0 ? -1 : syscall(SYS_pwrite64, file, data, said ? half(count) : count, offset);
}
ssize_t pwrite(int file, const void *data, size_t count, off_t offset) {
    return pwrite64(file, data, count, offset);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    int said = verdict(file);
    if (said > 0 && count > 0) return syscall(SYS_write, file, parts[0].iov_base, half(parts[0].iov_len));
    return said < 0 ? -1 : syscall(SYS_writev, file, parts, count);
}
ssize_t sendfile64(int out, int in, off64_t *offset, size_t count) {
    int said = verdict(out);
    return said < 0 ? -1 : syscall(SYS_sendfile, out, in, offset, said ? half(count) : count);
}
ssize_t sendfile(int out, int in, off_t *offset, size_t count) { return sendfile64(out, in, offset, count); }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags) {
    int said = verdict(out);
    return said < 0 ? -1 : syscall(SYS_copy_file_range, in, from, out, to, said ? half(count) : count, flags);
}

/* These have no half. */
int fsync(int file) { return verdict(file) < 0 ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return verdict(file) < 0 ? -1 : (int)syscall(SYS_fdatasync, file); }
int ftruncate64(int file, off64_t size) {
    return verdict(file) < 0 ? -1 : (int)syscall(SYS_ftruncate, file, size);
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }
int fallocate64(int file, int mode, off64_t from, off64_t size) {
    return verdict(file) < 0 ? -1 : (int)syscall(SYS_fallocate, file, mode, from, size);
}
int fallocate(int file, int mode, off_t from, off_t size) { return fallocate64(file, mode, from, size); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = (int)syscall(SYS_clock_gettime, clock, now);
    if (!done && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += control->clock;
    return done;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

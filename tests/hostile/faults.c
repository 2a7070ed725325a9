/* Preloaded: ends or fails a process at its n-th change of a file below a folder, as a kill or a full disk would.
 *
 * fault_arm(folder, at, action) arms it in this process alone. A positive action is a signal that the process sends to
 * itself before the change; a negative one is an errno that the change fails with. ENOSPC and EROFS stay, and a write
 * that meets ENOSPC first writes half of its bytes; the others fail once. fault_count() tells the changes so far.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static int at, action, count;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void fault_arm(const char *under, int n, int what)
{
    snprintf(folder, sizeof folder, "%s/", under);
    at = n, action = what, count = 0;
}

int fault_count(void) { return count; }

static int below(int dir, const char *path)
{
    char start[PATH_MAX] = "", link[64];
    if (!folder[0])
        return 0;
    if (path[0] != '/') {
        if (dir == AT_FDCWD)
            strcpy(link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t length = readlink(link, start, sizeof start - 2);
        if (length < 0)
            return 0;
        start[length] = '/', start[length + 1] = 0;
    }
    strncat(start, path, sizeof start - strlen(start) - 1);
    return strncmp(start, folder, strlen(folder)) == 0;
}

static int below_fd(int fd)
{
    char path[PATH_MAX], link[64];
    if (!folder[0])
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

/* Tells whether a change must fail; `frees` is one that a full disk allows. */
static int fails(int frees)
{
    count++;
    if (!at || count < at)
        return 0;
    if (action > 0) {
        if (count == at)
            raise(action);
        return 0;
    }
    int stays = action == -EROFS || (action == -ENOSPC && !frees);
    if (count == at ? action == -ENOSPC && frees : !stays)
        return 0;
    errno = -action;
    return 1;
}

#define CHANGE(condition, frees)           \
    do {                                   \
        int before = errno;                \
        if ((condition) && fails(frees))   \
            return -1;                     \
        errno = before;                    \
    } while (0)

static int opened(int dir, const char *path, int flags, mode_t mode)
{
    CHANGE((flags & (O_CREAT | O_TRUNC)) && below(dir, path), 0);
    return NEXT(openat)(dir, path, flags, mode);
}

#define MODE                                        \
    va_list more;                                   \
    va_start(more, flags);                          \
    mode_t mode = va_arg(more, int);                \
    va_end(more)

int open(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE; return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE; return opened(dir, path, flags | O_LARGEFILE, mode); }

ssize_t write(int fd, const void *data, size_t size)
{
    if (below_fd(fd) && fails(0)) {
        if (action != -ENOSPC || count != at || size < 2)
            return -1;
        return NEXT(write)(fd, data, size / 2);
    }
    return NEXT(write)(fd, data, size);
}

int fsync(int fd) { CHANGE(below_fd(fd), 0); return NEXT(fsync)(fd); }
int ftruncate(int fd, off_t size) { CHANGE(below_fd(fd), 1); return NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { CHANGE(below_fd(fd), 1); return NEXT(ftruncate64)(fd, size); }
int fchmod(int fd, mode_t mode) { CHANGE(below_fd(fd), 1); return NEXT(fchmod)(fd, mode); }
int mkdir(const char *path, mode_t mode) { CHANGE(below(AT_FDCWD, path), 0); return NEXT(mkdir)(path, mode); }
int rmdir(const char *path) { CHANGE(below(AT_FDCWD, path), 1); return NEXT(rmdir)(path); }
int unlink(const char *path) { CHANGE(below(AT_FDCWD, path), 1); return NEXT(unlink)(path); }
int unlinkat(int dir, const char *path, int flags) { CHANGE(below(dir, path), 1); return NEXT(unlinkat)(dir, path, flags); }
int rename(const char *from, const char *to) { CHANGE(below(AT_FDCWD, to), 1); return NEXT(rename)(from, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    CHANGE(below(b, to), 1);
    return NEXT(renameat2)(a, from, b, to, flags);
}

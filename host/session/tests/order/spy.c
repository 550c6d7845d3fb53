// A program that tries to get hold of the files that another one makes in a directory before they have their names.
//
// Arguments: the directory, and the number of the process that makes the files. `r` on standard output when it watches.
// It ends with its standard input, and says then how often it has heard of a change, seen a file without a name, opened
// one, given one a name, and been let to a temporary name.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static int heard, seen, opened, named, used;
static int directory;
static struct stat place;

static void take(int file) {
    char name[32], path[64];
    opened++;
    snprintf(name, sizeof name, "stolen-%d", opened);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int by_path = linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
    if (!by_path || !linkat(file, "", directory, name, AT_EMPTY_PATH)) named++;
}

// Looks through the descriptors of a process.
static void look_through(const char *process) {
    char path[600], name[32];
    snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *list = opendir(path);
    if (!list) return;
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat found;
        if (entry->d_name[0] == '.' || fstatat(dirfd(list), entry->d_name, &found, 0)) continue;
        if (!S_ISREG(found.st_mode) || found.st_nlink || found.st_dev != place.st_dev) continue;
        seen++;
        snprintf(name, sizeof name, "stolen-by-%d", seen);
        if (!linkat(dirfd(list), entry->d_name, directory, name, AT_SYMLINK_FOLLOW)) named++;
        int file = openat(dirfd(list), entry->d_name, O_RDWR | O_CLOEXEC);
        if (file < 0) continue;
        take(file);
        close(file);
    }
    closedir(list);
}

static void look_through_all(void) {
    DIR *processes = opendir("/proc");
    if (!processes) return;
    for (struct dirent *entry; (entry = readdir(processes));) {
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') look_through(entry->d_name);
    }
    closedir(processes);
}

// The names that events bring with them: `#NUMBER` for a file without one.
static void try_name(const char *name) {
    char other[32];
    int is_unnamed = name[0] == '#', is_temporary = !strncmp(name, ".portcullis-", 12);
    if (!is_unnamed && !is_temporary) return;
    snprintf(other, sizeof other, "stolen-as-%d", heard);
    int file = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0) used++, close(file);
    if (!linkat(directory, name, directory, other, 0)) used++;
    if (!renameat(directory, name, directory, other)) used++;
}

// The handles that events of fanotify bring with them.
static void try_handles(int watcher) {
    char events[4096] __attribute__((aligned(8)));
    ssize_t length = read(watcher, events, sizeof events);
    struct fanotify_event_metadata *event = (void *)events;
    for (; length > 0 && FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
        heard++;
        char *at = (char *)(event + 1), *end = (char *)event + event->event_len;
        while (at + sizeof(struct fanotify_event_info_header) <= end) {
            struct fanotify_event_info_fid *info = (void *)at;
            if (!info->hdr.len) break;
            if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_FID) {
                struct stat found;
                int file = open_by_handle_at(directory, (void *)info->handle, O_RDWR | O_CLOEXEC);
                if (file >= 0) {
                    if (!fstat(file, &found) && S_ISREG(found.st_mode) && !found.st_nlink) take(file);
                    close(file);
                }
            }
            at += info->hdr.len;
        }
    }
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    directory = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || fstat(directory, &place)) return 3;
    int names = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (names < 0 || inotify_add_watch(names, arguments[1], IN_ALL_EVENTS & ~IN_ACCESS) < 0) return 4;
    int handles = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC | FAN_NONBLOCK, 0);
    if (handles >= 0) {
        fanotify_mark(handles, FAN_MARK_ADD, FAN_OPEN | FAN_MODIFY | FAN_CLOSE_WRITE | FAN_EVENT_ON_CHILD, directory, ".");
    }
    if (write(1, "r\n", 2) != 2) return 5;
    for (;;) {
        struct pollfd wait[] = {{0, POLLIN, 0}, {names, POLLIN, 0}, {handles, POLLIN, 0}};
        poll(wait, 3, 10);
        if (wait[0].revents) break;
        char events[4096] __attribute__((aligned(8)));
        ssize_t length = read(names, events, sizeof events);
        for (char *at = events; length > 0 && at < events + length;) {
            struct inotify_event *event = (void *)at;
            heard++;
            look_through(arguments[2]);
            if (event->len) try_name(event->name);
            at += sizeof *event + event->len;
        }
        if (handles >= 0) try_handles(handles);
        look_through_all();
    }
    printf("%d %d %d %d %d\n", heard, seen, opened, named, used);
    return 0;
}

// A command that changes names as soon as it sees a file tool at work in a directory that it watches.
//
// Arguments: how many tries, what to prepare, the directory to watch, what to do then (`rename FROM TO` or `mkdir DIR`).
// What to prepare is a list with commas: `DIR/` makes a directory, `FILE` a file that git takes for a `HEAD`, `FILE+` one
// with settings that have git read a second file of them, `FILE-` an empty one.
// Each try: `p` on standard output when all is prepared; then a line says when to strike: `e` at the first event, `b`
// blindly, `w` when another line comes. `r` when the directory is watched, `a` when the change was tried; then a line is
// read.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HEAD[] = "ref: refs/heads/main\n";
static const char SETTINGS[] = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";

static void prepare(const char *list) {
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *name = strtok(copy, ","); name; name = strtok(0, ",")) {
        size_t length = strlen(name);
        if (name[length - 1] == '/') {
            name[length - 1] = 0;
            mkdir(name, 0755);
            continue;
        }
        const char *text = HEAD;
        if (name[length - 1] == '+' || name[length - 1] == '-') {
            text = name[length - 1] == '+' ? SETTINGS : "";
            name[length - 1] = 0;
        }
        int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
        if (file < 0) continue;
        ssize_t written = write(file, text, strlen(text));
        (void)written;
        close(file);
    }
}

static void say(char word) {
    char text[2] = {word, '\n'};
    ssize_t written = write(1, text, 2);
    (void)written;
}

static char hear(void) {
    char line[2];
    for (size_t have = 0; have < sizeof line;) {
        ssize_t more = read(0, line + have, sizeof line - have);
        if (more < 1) exit(0);
        have += more;
    }
    return line[0];
}

int main(int count, char **arguments) {
    if (count < 6) return 2;
    int tries = atoi(arguments[1]);
    for (int number = 0; number < tries; number++) {
        prepare(arguments[2]);
        say('p');
        char when = hear();
        int watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (watcher < 0) return 3;
        inotify_add_watch(watcher, arguments[3], IN_ALL_EVENTS);
        // What it has prepared itself is no event.
        char events[4096];
        while (read(watcher, events, sizeof events) > 0) {
        }
        say('r');
        if (when == 'w') {
            hear();
        } else if (when == 'e') {
            struct pollfd event = {watcher, POLLIN, 0};
            poll(&event, 1, 50);
        } else {
            // At another moment each time.
            for (volatile int i = 0; i < number * 97 % 60000; i++) {
            }
        }
        if (!strcmp(arguments[4], "mkdir")) mkdir(arguments[5], 0755);
        else if (count > 6) rename(arguments[5], arguments[6]);
        say('a');
        close(watcher);
        hear();
    }
    return 0;
}

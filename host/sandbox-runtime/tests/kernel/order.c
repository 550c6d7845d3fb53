// One of two processes, each in a sandbox of its own, that change names of one project at the same moment. Arguments:
// the side (0 or 1), the kind of race, the number of attempts, a file that both have mapped, and `once` to end when the
// race is lost.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct shared {
    volatile int arrived[2];
    volatile int over;
};

static struct shared *shared;
static int side;

static void meet(int step) {
    __atomic_store_n(&shared->arrived[side], step, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->arrived[!side], __ATOMIC_SEQ_CST) < step) sched_yield();
}

static void spin(int rounds) {
    for (volatile int i = 0; i < rounds; i++) {
    }
}

// The side that checks reports the result before both continue.
static int settle(int number, int lost) {
    if (lost && shared->over == 1) shared->over = 2;
    meet(3 * number + 3);
    return lost;
}

static void put(const char *path, const char *text) {
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (file < 0) return;
    ssize_t written = write(file, text, strlen(text));
    (void)written;
    close(file);
}

static int holds(const char *path, const char *word) {
    char text[256] = "";
    int file = open(path, O_RDONLY);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 && strstr(text, word) != 0;
}

#define EVIL "[core]\n\tfsmonitor = evil\n"

// Two halves of a repository, each of which is harmless by itself.
static int repository(int number) {
    char top[64], config[80], refs[80], head[80], objects[80];
    snprintf(top, sizeof top, "r%d", number);
    snprintf(config, sizeof config, "%s/config", top);
    snprintf(refs, sizeof refs, "%s/refs", top);
    snprintf(head, sizeof head, "%s/HEAD", top);
    snprintf(objects, sizeof objects, "%s/objects", top);
    if (!side) {
        mkdir(top, 0755);
        put(head, "ref: refs/heads/main\n");
        mkdir(objects, 0755);
    }
    meet(3 * number + 1);
    if (!side) spin(number * 97 % 30000);
    if (side) mkdir(refs, 0755);
    else put(config, EVIL);
    meet(3 * number + 2);
    struct stat status;
    int lost = !side && !stat(refs, &status) && holds(config, "fsmonitor");
    return settle(number, lost);
}

// A directory gets a name that gives a meaning to files created in it.
static int moved(int number) {
    char from[64], to[64], made[80], found[80];
    snprintf(from, sizeof from, "w%d", number);
    snprintf(to, sizeof to, "p%d/.hg", number);
    snprintf(made, sizeof made, "%s/hgrc", from);
    snprintf(found, sizeof found, "%s/hgrc", to);
    if (!side) {
        char holder[64];
        snprintf(holder, sizeof holder, "p%d", number);
        mkdir(from, 0755);
        mkdir(holder, 0755);
    }
    meet(3 * number + 1);
    if (!side) spin(number * 97 % 30000);
    if (side) {
        int renamed = rename(from, to);
        (void)renamed;
    } else put(made, "[hooks]\nupdate = evil\n");
    meet(3 * number + 2);
    int lost = !side && holds(found, "evil");
    return settle(number, lost);
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    side = arguments[1][0] == '1';
    int tries = atoi(arguments[3]), lost = 0;
    int file = open(arguments[4], O_RDWR);
    if (file < 0) return 2;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return 2;
    if (count > 5) shared->over = 1;
    int tried = 0;
    for (int number = 0; number < tries && shared->over < 2; number++, tried++) {
        lost += arguments[2][0] == 'r' ? repository(number) : moved(number);
    }
    printf("%d of %d lost\n", lost, tried);
    return lost ? 1 : 0;
}

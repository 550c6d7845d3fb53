// Opens descriptor 100 again for reading while another thread replaces it by a memfd and by another file in turn: the
// file of the second argument, opened with O_PATH, or standard output without that argument. Exits with 1 if that file
// was opened.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBER = 100 };

static int wanted, harmless;
static volatile int done;

static void *change(void *nothing) {
    while (!done) {
        dup2(wanted, NUMBER);
        dup2(harmless, NUMBER);
    }
    return nothing;
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    int tries = atoi(arguments[1]), opened = 0, leaked = 0;
    wanted = count > 2 ? open(arguments[2], O_PATH) : dup(1);
    harmless = memfd_create("x", 0);
    if (wanted < 0 || harmless < 0 || dup2(harmless, NUMBER) < 0) return 2;
    struct stat want, found;
    fstat(wanted, &want);
    pthread_t other;
    if (pthread_create(&other, 0, change, 0)) return 2;
    for (int i = 0; i < tries && !leaked; i++) {
        // On a busy machine the other thread would not run at all.
        if (i % 64 == 0) sched_yield();
        int file = open("/proc/self/fd/100", O_RDONLY);
        if (file < 0) continue;
        opened++;
        fstat(file, &found);
        leaked += found.st_ino == want.st_ino && found.st_dev == want.st_dev;
        close(file);
    }
    done = 1;
    pthread_join(other, 0);
    fprintf(stderr, "%d of %d opened\n", opened, tries);
    return leaked ? 1 : opened ? 0 : 3;
}

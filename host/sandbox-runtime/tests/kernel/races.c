// Tries to create a name that rules refuse while another thread changes what the name means. Arguments: how it is
// changed (string, descriptor, directory, exchange), the number of attempts, the pause between them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile char name[16];
static volatile int done;
static int pause_rounds, good, bad, how;

static void wait_a_little(void) {
    for (volatile int i = 0; i < pause_rounds; i++) {
    }
}

static void *change(void *nothing) {
    while (!done) {
        if (how == 's') {
            memcpy((void *)name, "fine", 4);
            wait_a_little();
            memcpy((void *)name, "evil", 4);
        } else if (how == 'd') {
            dup2(good, 50);
            wait_a_little();
            dup2(bad, 50);
        } else if (how == 'c') {
            if (fchdir(good) == 0) wait_a_little();
            if (fchdir(bad) != 0) break;
        } else {
            syscall(SYS_renameat2, AT_FDCWD, "swap", AT_FDCWD, "link", 2);
        }
        wait_a_little();
    }
    return nothing;
}

static int try_once(int odd) {
    if (how == 's') return open((char *)name, O_CREAT | O_WRONLY | (odd ? O_EXCL : 0), 0644);
    if (how == 'd') return openat(50, "new", O_CREAT | O_WRONLY, 0644);
    if (how == 'c') return open("new", O_CREAT | O_WRONLY, 0644);
    return open("swap/new", O_CREAT | O_WRONLY, 0644);
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    how = arguments[1][0];
    int tries = atoi(arguments[2]), made = 0, opened = 0;
    pause_rounds = atoi(arguments[3]);
    memcpy((void *)name, "fine", 5);
    int home = open(".", O_RDONLY | O_DIRECTORY);
    good = open("good", O_RDONLY | O_DIRECTORY);
    bad = open("evil-place", O_RDONLY | O_DIRECTORY);
    if (home < 0 || good < 0 || bad < 0) return 2;
    dup2(good, 50);
    pthread_t other;
    if (pthread_create(&other, 0, change, 0)) return 2;
    for (int i = 0; i < tries; i++) {
        struct stat status;
        int file = try_once(i & 1);
        if (file >= 0) opened++, close(file);
        if (!fstatat(home, "evil", &status, 0)) made++, unlinkat(home, "evil", 0);
        if (!fstatat(bad, "new", &status, 0)) made++, unlinkat(bad, "new", 0);
        unlinkat(home, "fine", 0);
        unlinkat(good, "new", 0);
    }
    done = 1;
    pthread_join(other, 0);
    printf("%d of %d opened, %d refused names made\n", opened, tries, made);
    return made ? 1 : 0;
}

// Tries to read, or to execute, a file that rules hide while another thread changes what the path means.
// Arguments: how it is changed (string, proc, exchange, run), the number of attempts, the pause between them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile char *name;
static volatile int done;
static int pause_rounds, how;
static char good[64], bad[64];

static void wait_a_little(void) {
    for (volatile int i = 0; i < pause_rounds; i++) {
    }
}

static void *change(void *nothing) {
    while (!done) {
        if (how == 'e') {
            syscall(SYS_renameat2, AT_FDCWD, "swap", AT_FDCWD, "link", 2);
        } else {
            memcpy((void *)name, bad, sizeof bad);
            wait_a_little();
            memcpy((void *)name, good, sizeof good);
        }
        wait_a_little();
    }
    return nothing;
}

static int run(void) {
    pid_t child = vfork();
    if (!child) {
        char *arguments[] = {"x", 0}, *environment[] = {0};
        execve((char *)name, arguments, environment);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    // An exit code of 1 means that `false` was executed; a killed process has not run it.
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    how = arguments[1][0];
    int tries = atoi(arguments[2]), opened = 0, leaked = 0;
    pause_rounds = atoi(arguments[3]);
    static char shared[64];
    name = shared;
    strcpy(good, how == 'p' ? "/proc/self/comm" : how == 'r' ? "fine.run" : "fine.txt");
    strcpy(bad, how == 'r' ? "run.pem" : "evil.pem");
    memcpy((void *)name, good, sizeof good);
    pthread_t other;
    if (pthread_create(&other, 0, change, 0)) return 2;
    for (int i = 0; i < tries; i++) {
        if (how == 'r') {
            leaked += run();
            continue;
        }
        int file = open(how == 'e' ? "swap" : (char *)name, O_RDONLY);
        if (file < 0) continue;
        char text[16] = "";
        if (read(file, text, 10) > 0) opened++;
        if (!strncmp(text, "the secret", 10)) leaked++;
        close(file);
    }
    done = 1;
    pthread_join(other, 0);
    printf("%d of %d opened, %d times what is hidden\n", opened, tries, leaked);
    return leaked ? 1 : 0;
}

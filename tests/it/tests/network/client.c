/* Resolves a name only for the address families of the machine, and fetches a file from each address in the answer. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words) {
    struct addrinfo hints = {.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM}, *found;
    char text[4096];
    ssize_t length;
    int problem = count == 3 ? getaddrinfo(words[1], words[2], &hints, &found) : EAI_FAIL;
    if (problem) return puts(gai_strerror(problem)), 1;
    for (; found; found = found->ai_next) {
        int stream = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
        if (stream < 0 || connect(stream, found->ai_addr, found->ai_addrlen)) continue;
        snprintf(text, sizeof text, "GET /file HTTP/1.0\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", words[1], words[2]);
        if (write(stream, text, strlen(text)) < 0) return 1;
        while ((length = read(stream, text, sizeof text)) > 0) fwrite(text, 1, length, stdout);
        return 0;
    }
    return 1;
}

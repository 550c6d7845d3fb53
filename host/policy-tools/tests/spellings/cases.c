// Runs the shared test cases, which `cases.h` holds: `CASE(pattern, line, expected, hides)`, then `COMMAND(pattern,
// words, …)` for each command and `END(pattern, line, expected)`.
#include "commands.h"
#include <stdio.h>
#include <string.h>

#define WORD(text, is_literal) {.value = {(uint8_t *)(text), strlen(text)}, .literal = (is_literal)}
#define CASE(hides) best = (hides) ? PORTCULLIS_MAYBE : PORTCULLIS_NO;
#define COMMAND(pattern, ...)                                                                    \
    {                                                                                            \
        portcullis_policy_types_word_t words[] = {__VA_ARGS__};                                  \
        portcullis_match_t match = portcullis_matches_words(pattern, words, sizeof words / sizeof *words); \
        if (match > best) best = match;                                                          \
    }
#define END(pattern, line, expected) \
    count++;                         \
    if (strcmp(NAMES[best], expected) != 0) printf("wrong: `%s` for `%s`: %s\n", pattern, line, NAMES[best]);

static const char *const NAMES[] = {"no", "maybe", "yes"};

int main(void) {
    portcullis_match_t best;
    int count = 0;
#include "cases.h"
    printf("%d cases\n", count);
    return 0;
}

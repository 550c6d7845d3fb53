// Patterns of commands, matched by the table of known programs in `table.h`.
#ifndef PORTCULLIS_COMMANDS_H
#define PORTCULLIS_COMMANDS_H

#include "policy.h"

// How surely something runs a command that a pattern describes.
typedef enum { PORTCULLIS_NO, PORTCULLIS_MAYBE, PORTCULLIS_YES } portcullis_match_t;

// Matches a request against a pattern: a program with the words and options that
// matter, for example `git push --force`.
portcullis_match_t portcullis_matches(const portcullis_policy_types_request_t *request, const char *pattern);

// Whether a request certainly runs the pattern, and whether it runs it or may do so.
bool portcullis_runs(const portcullis_policy_types_request_t *request, const char *pattern);
bool portcullis_could_run(const portcullis_policy_types_request_t *request, const char *pattern);

// Matches the words of one command.
portcullis_match_t portcullis_matches_words(const char *pattern, const portcullis_policy_types_word_t *words,
                                            size_t count);

#endif

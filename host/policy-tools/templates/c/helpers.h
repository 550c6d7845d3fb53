// Short ways to write the answers of a policy in C. `policy.h` is the contract.
//
// Texts are not copied and memory is never given back: every call runs in a fresh
// copy of the policy.
#ifndef PORTCULLIS_HELPERS_H
#define PORTCULLIS_HELPERS_H

#include "policy.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *id;
    const char *title;
} portcullis_rule_t;

// Texts.
policy_string_t portcullis_text(const char *text);
policy_string_t portcullis_joined(policy_string_t directory, policy_string_t name);
policy_string_t portcullis_pointer(const char *before, size_t index);
bool portcullis_is(policy_string_t text, const char *other);

// `describe`: everything but what is rarely needed, which is empty.
void portcullis_describe(exports_portcullis_policy_lifecycle_descriptor_t *about, const char *id, const char *version,
                         const char *title, const portcullis_rule_t *rules, size_t count);

// `configure`: errors are gathered and told at the end.
typedef struct {
    portcullis_policy_types_config_error_t *ptr;
    size_t len;
} portcullis_errors_t;

portcullis_errors_t portcullis_no_errors(void);
void portcullis_fault(portcullis_errors_t *errors, policy_string_t pointer, const char *message);
bool portcullis_configured(portcullis_errors_t *errors, exports_portcullis_policy_lifecycle_list_config_error_t *told);

// Reads a configuration that is an object with one list of texts, `{"keep": ["a"]}`.
// False when the list is not there; whatever else is wrong becomes an error.
bool portcullis_config_strings(exports_portcullis_policy_lifecycle_json_t *config, const char *key,
                               policy_string_t *found, size_t most, size_t *count, portcullis_errors_t *errors);

// Verdicts.
void portcullis_abstain(portcullis_policy_types_evaluation_t *answer);
void portcullis_allow(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason);
void portcullis_ask(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason,
                    const char *title);
void portcullis_deny(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason,
                     const char *hint);
void portcullis_no_output_opinion(portcullis_policy_types_output_evaluation_t *answer);

// Commands: the host's reading, or that there is none.
typedef enum { PORTCULLIS_NO_COMMAND, PORTCULLIS_UNREAD, PORTCULLIS_READ } portcullis_reading_t;
portcullis_reading_t portcullis_script(const portcullis_policy_types_request_t *request,
                                       const portcullis_policy_types_parsed_script_t **script);
// Whether some command of a script begins with these two words, for certain; the
// second may be NULL.
bool portcullis_runs(const portcullis_policy_types_parsed_script_t *script, const char *program, const char *word);

// Rules. The last rule that matches answers.
void portcullis_no_opinion(exports_portcullis_policy_confinement_profile_t *profile);
portcullis_policy_types_file_pattern_t portcullis_exact(policy_string_t path);
portcullis_policy_types_file_pattern_t portcullis_tree(policy_string_t path);
exports_portcullis_policy_confinement_file_rule_t *portcullis_file_rule(
    exports_portcullis_policy_confinement_profile_t *profile, const char *id,
    portcullis_policy_types_file_pattern_t pattern, portcullis_policy_types_file_rights_t rights,
    exports_portcullis_policy_confinement_effect_t effect);

#endif

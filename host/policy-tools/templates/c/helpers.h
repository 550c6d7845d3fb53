// Short ways to write the answers of a policy in C. `policy.h` is the contract.
//
// Texts are not copied and memory is never given back: every call runs in a fresh
// copy of the policy.
#ifndef PORTCULLIS_HELPERS_H
#define PORTCULLIS_HELPERS_H

#include "commands.h"
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

// Obligations of an answer of `portcullis_allow`: duties of the host if the action is
// allowed. The tag is one of PORTCULLIS_POLICY_TYPES_OBLIGATION_NOTIFY (a text for the
// user), _ADVISE (for the model), _REWRITE_SCRIPT and _REWRITE_INPUT.
void portcullis_oblige(portcullis_policy_types_evaluation_t *answer, uint8_t tag, const char *text);
void portcullis_oblige_host(portcullis_policy_types_evaluation_t *answer, const char *name, const char *json);

// Offers of an answer of `portcullis_ask`, the narrowest first: for exactly this
// request, for files, and for a host.
typedef portcullis_policy_types_grant_scope_t portcullis_scope_t;
void portcullis_offer(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope);
void portcullis_offer_file(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope,
                           portcullis_policy_types_file_pattern_t pattern,
                           portcullis_policy_types_file_rights_t rights);
void portcullis_offer_host(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope,
                           portcullis_policy_types_network_pattern_t pattern);

// Answers about the output of a tool.
void portcullis_pass(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason);
void portcullis_withhold(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason);
// Shows these blocks instead, which must have the same number and kinds.
void portcullis_replace(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason,
                        portcullis_policy_types_list_content_block_t blocks);

// Rules. The last rule that matches answers.
void portcullis_no_opinion(exports_portcullis_policy_confinement_profile_t *profile);
portcullis_policy_types_file_pattern_t portcullis_exact(policy_string_t path);
portcullis_policy_types_file_pattern_t portcullis_tree(policy_string_t path);
exports_portcullis_policy_confinement_file_rule_t *portcullis_file_rule(
    exports_portcullis_policy_confinement_profile_t *profile, const char *id,
    portcullis_policy_types_file_pattern_t pattern, portcullis_policy_types_file_rights_t rights,
    exports_portcullis_policy_confinement_effect_t effect);

// A host with its ports: `example.com`, `*.example.com`, an address or a block of
// addresses. No ports stand for all of them.
portcullis_policy_types_network_pattern_t portcullis_host(const char *host, const uint16_t *ports, size_t count);
exports_portcullis_policy_confinement_network_rule_t *portcullis_host_rule(
    exports_portcullis_policy_confinement_profile_t *profile, const char *id,
    portcullis_policy_types_network_pattern_t target, exports_portcullis_policy_confinement_effect_t effect);

#endif

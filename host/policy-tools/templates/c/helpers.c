// See `helpers.h`.
#include "helpers.h"

policy_string_t portcullis_text(const char *text) {
    policy_string_t string = {(uint8_t *)text, strlen(text)};
    return string;
}

bool portcullis_is(policy_string_t text, const char *other) {
    return text.len == strlen(other) && memcmp(text.ptr, other, text.len) == 0;
}

policy_string_t portcullis_joined(policy_string_t directory, policy_string_t name) {
    policy_string_t path = {malloc(directory.len + name.len + 1), directory.len + name.len + 1};
    memcpy(path.ptr, directory.ptr, directory.len);
    path.ptr[directory.len] = '/';
    memcpy(path.ptr + directory.len + 1, name.ptr, name.len);
    return path;
}

policy_string_t portcullis_pointer(const char *before, size_t index) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    size_t length = strlen(before);
    policy_string_t pointer = {malloc(length + count), length + count};
    memcpy(pointer.ptr, before, length);
    while (count > 0) pointer.ptr[length++] = (uint8_t)digits[--count];
    return pointer;
}

void portcullis_describe(exports_portcullis_policy_lifecycle_descriptor_t *about, const char *id, const char *version,
                         const char *title, const portcullis_rule_t *rules, size_t count) {
    memset(about, 0, sizeof *about);
    about->id = portcullis_text(id);
    about->version = portcullis_text(version);
    about->title = portcullis_text(title);
    about->rules.ptr = malloc(count * sizeof *about->rules.ptr);
    about->rules.len = count;
    for (size_t index = 0; index < count; index++) {
        about->rules.ptr[index].id = portcullis_text(rules[index].id);
        about->rules.ptr[index].title = portcullis_text(rules[index].title);
        about->rules.ptr[index].help = portcullis_text("");
    }
    about->config_schema = portcullis_text("");
}

portcullis_errors_t portcullis_no_errors(void) {
    portcullis_errors_t none = {NULL, 0};
    return none;
}

void portcullis_fault(portcullis_errors_t *errors, policy_string_t pointer, const char *message) {
    errors->ptr = realloc(errors->ptr, (errors->len + 1) * sizeof *errors->ptr);
    errors->ptr[errors->len].pointer = pointer;
    errors->ptr[errors->len].message = portcullis_text(message);
    errors->len++;
}

bool portcullis_configured(portcullis_errors_t *errors, exports_portcullis_policy_lifecycle_list_config_error_t *told) {
    told->ptr = errors->ptr;
    told->len = errors->len;
    return errors->len == 0;
}

// The host has checked that the configuration is JSON; what is odd all the same is refused.
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} reader_t;

static bool next_is(reader_t *reader, char wanted) {
    while (reader->at < reader->end && *reader->at <= ' ') reader->at++;
    if (reader->at == reader->end || *reader->at != (uint8_t)wanted) return false;
    reader->at++;
    return true;
}

static bool read_text(reader_t *reader, policy_string_t *text) {
    if (!next_is(reader, '"')) return false;
    text->ptr = malloc((size_t)(reader->end - reader->at));
    text->len = 0;
    while (reader->at < reader->end && *reader->at != '"') {
        uint8_t byte = *reader->at++;
        if (byte == '\\') {
            if (reader->at == reader->end) return false;
            byte = *reader->at++;
            // The others stand for characters that no path should hold.
            if (byte != '"' && byte != '\\' && byte != '/') return false;
        }
        text->ptr[text->len++] = byte;
    }
    return next_is(reader, '"');
}

static policy_string_t key_pointer(policy_string_t key) {
    policy_string_t empty = {NULL, 0};
    return portcullis_joined(empty, key);
}

bool portcullis_config_strings(exports_portcullis_policy_lifecycle_json_t *config, const char *key,
                               policy_string_t *found, size_t most, size_t *count, portcullis_errors_t *errors) {
    reader_t reader = {config->ptr, config->ptr + config->len};
    policy_string_t name;
    *count = 0;
    if (!next_is(&reader, '{')) goto odd;
    if (next_is(&reader, '}')) return false;
    if (!read_text(&reader, &name)) goto odd;
    if (!portcullis_is(name, key)) {
        portcullis_fault(errors, key_pointer(name), "there is no such key");
        return true;
    }
    if (!next_is(&reader, ':') || !next_is(&reader, '[')) goto odd;
    if (!next_is(&reader, ']')) {
        do {
            if (*count == most || !read_text(&reader, &found[*count])) goto odd;
            (*count)++;
        } while (next_is(&reader, ','));
        if (!next_is(&reader, ']')) goto odd;
    }
    if (next_is(&reader, '}')) return true;
odd:
    portcullis_fault(errors, portcullis_text(""), "write one list of texts");
    return true;
}

static void answer_with(portcullis_policy_types_evaluation_t *answer, uint8_t verdict, const char *rule,
                        const char *reason, portcullis_policy_types_severity_t severity) {
    memset(answer, 0, sizeof *answer);
    answer->verdict.tag = verdict;
    answer->cause.rule = portcullis_text(rule);
    answer->cause.reason = portcullis_text(reason);
    answer->cause.severity = severity;
}

void portcullis_abstain(portcullis_policy_types_evaluation_t *answer) {
    answer_with(answer, PORTCULLIS_POLICY_TYPES_VERDICT_ABSTAIN, "", "", PORTCULLIS_POLICY_TYPES_SEVERITY_INFO);
}

void portcullis_allow(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason) {
    answer_with(answer, PORTCULLIS_POLICY_TYPES_VERDICT_ALLOW, rule, reason, PORTCULLIS_POLICY_TYPES_SEVERITY_INFO);
}

void portcullis_ask(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason,
                    const char *title) {
    answer_with(answer, PORTCULLIS_POLICY_TYPES_VERDICT_ASK, rule, reason, PORTCULLIS_POLICY_TYPES_SEVERITY_MEDIUM);
    answer->verdict.val.ask.title = portcullis_text(title);
}

void portcullis_deny(portcullis_policy_types_evaluation_t *answer, const char *rule, const char *reason,
                     const char *hint) {
    answer_with(answer, PORTCULLIS_POLICY_TYPES_VERDICT_DENY, rule, reason, PORTCULLIS_POLICY_TYPES_SEVERITY_HIGH);
    answer->verdict.val.deny.hint.is_some = true;
    answer->verdict.val.deny.hint.val = portcullis_text(hint);
}

void portcullis_no_output_opinion(portcullis_policy_types_output_evaluation_t *answer) {
    memset(answer, 0, sizeof *answer);
    answer->verdict.tag = PORTCULLIS_POLICY_TYPES_OUTPUT_VERDICT_ABSTAIN;
}

static portcullis_policy_types_obligation_t *new_obligation(portcullis_policy_types_evaluation_t *answer, uint8_t tag) {
    portcullis_policy_types_list_obligation_t *list = &answer->verdict.val.allow.obligations;
    list->ptr = realloc(list->ptr, (list->len + 1) * sizeof *list->ptr);
    memset(&list->ptr[list->len], 0, sizeof *list->ptr);
    list->ptr[list->len].tag = tag;
    return &list->ptr[list->len++];
}

void portcullis_oblige(portcullis_policy_types_evaluation_t *answer, uint8_t tag, const char *text) {
    // All but the last kind hold one text.
    new_obligation(answer, tag)->val.notify = portcullis_text(text);
}

void portcullis_oblige_host(portcullis_policy_types_evaluation_t *answer, const char *name, const char *json) {
    portcullis_policy_types_obligation_t *made = new_obligation(answer, PORTCULLIS_POLICY_TYPES_OBLIGATION_OTHER);
    made->val.other.name = portcullis_text(name);
    made->val.other.value = portcullis_text(json);
}

static portcullis_policy_types_grant_pattern_t *new_offer(portcullis_policy_types_evaluation_t *answer,
                                                          const char *label, portcullis_scope_t scope, uint8_t tag) {
    portcullis_policy_types_list_grant_option_t *list = &answer->verdict.val.ask.options;
    list->ptr = realloc(list->ptr, (list->len + 1) * sizeof *list->ptr);
    portcullis_policy_types_grant_option_t *made = &list->ptr[list->len++];
    memset(made, 0, sizeof *made);
    made->label = portcullis_text(label);
    made->scope = scope;
    made->pattern.tag = tag;
    return &made->pattern;
}

void portcullis_offer(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope) {
    new_offer(answer, label, scope, PORTCULLIS_POLICY_TYPES_GRANT_PATTERN_EXACT);
}

void portcullis_offer_file(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope,
                           portcullis_policy_types_file_pattern_t pattern,
                           portcullis_policy_types_file_rights_t rights) {
    portcullis_policy_types_grant_pattern_t *made =
        new_offer(answer, label, scope, PORTCULLIS_POLICY_TYPES_GRANT_PATTERN_PATH);
    made->val.path.pattern = pattern;
    made->val.path.rights = rights;
}

void portcullis_offer_host(portcullis_policy_types_evaluation_t *answer, const char *label, portcullis_scope_t scope,
                           portcullis_policy_types_network_pattern_t pattern) {
    new_offer(answer, label, scope, PORTCULLIS_POLICY_TYPES_GRANT_PATTERN_NETWORK)->val.network = pattern;
}

static void output_answer(portcullis_policy_types_output_evaluation_t *answer, uint8_t tag, const char *rule,
                          const char *reason) {
    memset(answer, 0, sizeof *answer);
    answer->verdict.tag = tag;
    answer->cause.rule = portcullis_text(rule);
    answer->cause.reason = portcullis_text(reason);
}

void portcullis_pass(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason) {
    output_answer(answer, PORTCULLIS_POLICY_TYPES_OUTPUT_VERDICT_PASS, rule, reason);
}

void portcullis_withhold(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason) {
    output_answer(answer, PORTCULLIS_POLICY_TYPES_OUTPUT_VERDICT_WITHHOLD, rule, reason);
}

void portcullis_replace(portcullis_policy_types_output_evaluation_t *answer, const char *rule, const char *reason,
                        portcullis_policy_types_list_content_block_t blocks) {
    output_answer(answer, PORTCULLIS_POLICY_TYPES_OUTPUT_VERDICT_REPLACE, rule, reason);
    answer->verdict.val.replace = blocks;
}

void portcullis_no_opinion(exports_portcullis_policy_confinement_profile_t *profile) {
    memset(profile, 0, sizeof *profile);
    profile->tracing = EXPORTS_PORTCULLIS_POLICY_CONFINEMENT_CHOICE_NO_OPINION;
}

portcullis_policy_types_file_pattern_t portcullis_exact(policy_string_t path) {
    portcullis_policy_types_file_pattern_t pattern = {.tag = PORTCULLIS_POLICY_TYPES_FILE_PATTERN_EXACT};
    pattern.val.exact = path;
    return pattern;
}

portcullis_policy_types_file_pattern_t portcullis_tree(policy_string_t path) {
    portcullis_policy_types_file_pattern_t pattern = {.tag = PORTCULLIS_POLICY_TYPES_FILE_PATTERN_TREE};
    pattern.val.tree = path;
    return pattern;
}

exports_portcullis_policy_confinement_file_rule_t *portcullis_file_rule(
    exports_portcullis_policy_confinement_profile_t *profile, const char *id,
    portcullis_policy_types_file_pattern_t pattern, portcullis_policy_types_file_rights_t rights,
    exports_portcullis_policy_confinement_effect_t effect) {
    profile->files.ptr = realloc(profile->files.ptr, (profile->files.len + 1) * sizeof *profile->files.ptr);
    exports_portcullis_policy_confinement_file_rule_t *rule = &profile->files.ptr[profile->files.len++];
    memset(rule, 0, sizeof *rule);
    rule->id = portcullis_text(id);
    rule->pattern = pattern;
    rule->rights = rights;
    rule->effect = effect;
    return rule;
}

portcullis_policy_types_network_pattern_t portcullis_host(const char *host, const uint16_t *ports, size_t count) {
    portcullis_policy_types_network_pattern_t pattern = {.host = portcullis_text(host)};
    pattern.ports.tag = count == 0 ? PORTCULLIS_POLICY_TYPES_PORT_SET_EVERY : PORTCULLIS_POLICY_TYPES_PORT_SET_THESE;
    if (count > 0) {
        pattern.ports.val.these.ptr = malloc(count * sizeof *ports);
        memcpy(pattern.ports.val.these.ptr, ports, count * sizeof *ports);
        pattern.ports.val.these.len = count;
    }
    return pattern;
}

exports_portcullis_policy_confinement_network_rule_t *portcullis_host_rule(
    exports_portcullis_policy_confinement_profile_t *profile, const char *id,
    portcullis_policy_types_network_pattern_t target, exports_portcullis_policy_confinement_effect_t effect) {
    profile->network.ptr = realloc(profile->network.ptr, (profile->network.len + 1) * sizeof *profile->network.ptr);
    exports_portcullis_policy_confinement_network_rule_t *rule = &profile->network.ptr[profile->network.len++];
    memset(rule, 0, sizeof *rule);
    rule->id = portcullis_text(id);
    rule->target = target;
    rule->program = portcullis_text("*");
    rule->effect = effect;
    return rule;
}

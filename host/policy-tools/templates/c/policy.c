// Protects files by name, and keeps the agent from publishing.
//
// An example to change: rules (`standing`) hold for tools and commands, verdicts
// (`evaluate`) are for what rules cannot say. `portcullis/policy.h` is the contract;
// `portcullis/helpers.h` has short ways to write answers.

#include "portcullis/helpers.h"

// The files that stay, from the configuration: a list of strings.
static policy_string_t keep[16];
static size_t kept;

static const portcullis_rule_t RULES[] = {
    {"files.keep", "these files stay as they are"},
    {"command.publish", "publishing is for people"},
    {"command.unread", "what may publish is asked for"},
};

void exports_portcullis_policy_lifecycle_describe(exports_portcullis_policy_lifecycle_descriptor_t *about) {
    portcullis_describe(about, "__ID__", "0.1.0", "Files that stay, and no publishing", RULES, 3);
    about->handles = PORTCULLIS_POLICY_TYPES_ACTION_KINDS_COMMAND;
    about->config_schema = portcullis_text(
        "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"keep\":"
        "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"default\":[\"LICENSE\"]}}}");
}

bool exports_portcullis_policy_lifecycle_configure(
    exports_portcullis_policy_lifecycle_json_t *config,
    exports_portcullis_policy_lifecycle_list_config_error_t *errors) {
    portcullis_errors_t faults = portcullis_no_errors();
    kept = 0;
    if (!portcullis_config_strings(config, "keep", keep, 16, &kept, &faults)) {
        keep[0] = portcullis_text("LICENSE");
        kept = 1;
    }
    for (size_t index = 0; index < kept; index++) {
        if (keep[index].len == 0 || keep[index].ptr[0] == '/') {
            portcullis_fault(&faults, portcullis_pointer("/keep/", index), "write a path below the working directory");
        }
    }
    return portcullis_configured(&faults, errors);
}

void exports_portcullis_policy_confinement_standing(
    exports_portcullis_policy_confinement_context_t *context,
    exports_portcullis_policy_confinement_profile_t *profile) {
    portcullis_no_opinion(profile);
    if (context->workspace.roots.len == 0) return;
    for (size_t index = 0; index < kept; index++) {
        policy_string_t path = portcullis_joined(context->workspace.roots.ptr[0], keep[index]);
        exports_portcullis_policy_confinement_file_rule_t *rule = portcullis_file_rule(
            profile, "files.keep", portcullis_exact(path), PORTCULLIS_POLICY_TYPES_FILE_RIGHTS_WRITE,
            EXPORTS_PORTCULLIS_POLICY_CONFINEMENT_EFFECT_DENY);
        rule->reason = portcullis_text("this file stays as it is");
        rule->setting = portcullis_pointer("/keep/", index);
    }
}

void exports_portcullis_policy_evaluator_evaluate(
    exports_portcullis_policy_evaluator_request_t *request,
    exports_portcullis_policy_evaluator_context_t *context,
    exports_portcullis_policy_evaluator_evaluation_t *answer) {
    (void)context;
    portcullis_abstain(answer);
    if (portcullis_runs(request, "npm publish") || portcullis_runs(request, "cargo publish")) {
        portcullis_deny(answer, "command.publish", "publishing is for people",
                        "prepare the release and ask the user to publish it");
    } else if (portcullis_could_run(request, "npm publish") || portcullis_could_run(request, "cargo publish")) {
        portcullis_ask(answer, "command.unread", "the command may publish something", "Run it all the same?");
    }
}

bool exports_portcullis_policy_confinement_for_command(
    exports_portcullis_policy_confinement_request_t *request,
    exports_portcullis_policy_confinement_context_t *context,
    exports_portcullis_policy_confinement_profile_t *profile) {
    (void)request, (void)context, (void)profile;
    return false;
}

void exports_portcullis_policy_output_filter_inspect(
    exports_portcullis_policy_output_filter_tool_output_t *output,
    exports_portcullis_policy_output_filter_context_t *context,
    exports_portcullis_policy_output_filter_output_evaluation_t *answer) {
    (void)output, (void)context;
    portcullis_no_output_opinion(answer);
}

void exports_portcullis_policy_orientation_brief(
    exports_portcullis_policy_orientation_context_t *context, policy_string_t *text) {
    (void)context;
    *text = portcullis_text("");
}

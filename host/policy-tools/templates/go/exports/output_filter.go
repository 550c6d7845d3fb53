// Package export_portcullis_policy_output_filter has the function that the component exports; `portcullis.Export` sets
// it.
package export_portcullis_policy_output_filter

import types "policy/portcullis/portcullis_policy_types"

// Inspect has no opinion in a policy that sees no output.
var Inspect = func(types.ToolOutput, types.Context) types.OutputEvaluation {
	return types.OutputEvaluation{Verdict: types.MakeOutputVerdictAbstain()}
}

// Package export_portcullis_policy_evaluator has the function that the component exports; `portcullis.Export` sets it.
package export_portcullis_policy_evaluator

import types "policy/portcullis/portcullis_policy_types"

// Evaluate abstains in a policy without verdicts.
var Evaluate = func(types.Request, types.Context) types.Evaluation {
	return types.Evaluation{Verdict: types.MakeVerdictAbstain()}
}

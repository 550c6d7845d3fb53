// Package export_portcullis_policy_orientation has the function that the component exports; `portcullis.Export` sets it.
package export_portcullis_policy_orientation

import types "policy/portcullis/portcullis_policy_types"

// Brief has no text in a policy that tells the model nothing.
var Brief = func(types.Context) string { return "" }

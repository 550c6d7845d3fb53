// Package export_portcullis_policy_confinement has the functions that the component exports; `portcullis.Export` sets
// them.
package export_portcullis_policy_confinement

import (
	rules "policy/portcullis/portcullis_policy_confinement"
	types "policy/portcullis/portcullis_policy_types"
	wit "policy/portcullis/wit_types"
)

// Standing and ForCommand have no opinion in a policy without rules.
var (
	Standing   = func(types.Context) rules.Profile { return rules.Profile{} }
	ForCommand = func(types.Request, types.Context) wit.Option[rules.Profile] { return wit.None[rules.Profile]() }
)

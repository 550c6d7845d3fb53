// Package export_portcullis_policy_lifecycle has the functions that the component exports; `portcullis.Export` sets them.
package export_portcullis_policy_lifecycle

import (
	lifecycle "policy/portcullis/portcullis_policy_lifecycle"
	types "policy/portcullis/portcullis_policy_types"
	wit "policy/portcullis/wit_types"
)

// Describe and Configure are set by every policy.
var (
	Describe  func() lifecycle.Descriptor
	Configure func(config string) wit.Result[wit.Unit, []types.ConfigError]
)

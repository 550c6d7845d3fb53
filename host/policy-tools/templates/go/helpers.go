// Package portcullis has short ways to write a policy.
//
// The packages beside it are the contract in Go, with every field explained.
package portcullis

import (
	"encoding/json"

	"policy/portcullis/export_portcullis_policy_confinement"
	"policy/portcullis/export_portcullis_policy_evaluator"
	"policy/portcullis/export_portcullis_policy_lifecycle"
	"policy/portcullis/export_portcullis_policy_orientation"
	"policy/portcullis/export_portcullis_policy_output_filter"
	rules "policy/portcullis/portcullis_policy_confinement"
	lifecycle "policy/portcullis/portcullis_policy_lifecycle"
	types "policy/portcullis/portcullis_policy_types"
	_ "policy/portcullis/wit_exports"
	wit "policy/portcullis/wit_types"
)

// Types of the contract that most policies name.
type (
	Request          = types.Request
	Context          = types.Context
	Evaluation       = types.Evaluation
	OutputEvaluation = types.OutputEvaluation
	Output           = types.ToolOutput
	Block            = types.ContentBlock
	Profile          = rules.Profile
	FileRule         = rules.FileRule
	NetworkRule      = rules.NetworkRule
	FilePattern      = types.FilePattern
	Offer            = types.GrantOption
	Obligation       = types.Obligation
	ConfigError      = types.ConfigError
)

// Kinds of actions, rights on files, and scopes of grants.
const (
	File       = types.ActionKindsFile
	Command    = types.ActionKindsCommand
	Network    = types.ActionKindsNetwork
	Tool       = types.ActionKindsTool
	Escalation = types.ActionKindsEscalation
	Other      = types.ActionKindsOther

	Read    = types.FileRightsRead
	Write   = types.FileRightsWrite
	Execute = types.FileRightsExecute

	Once    = types.GrantScopeOnce
	Session = types.GrantScopeSession
	Project = types.GrantScopeProject
	User    = types.GrantScopeUser
)

// Rule is a rule that answers may name.
type Rule struct{ ID, Title string }

// Policy describes a policy, and has a function for each thing that it has an opinion on.
type Policy struct {
	ID, Version, Title string
	// The kinds of actions for which Evaluate is called.
	Handles uint16
	Rules   []Rule
	// JSON Schema of the configuration.
	ConfigSchema string
	// Configure takes the configuration, as JSON, and returns its errors.
	Configure  func(config []byte) []ConfigError
	Evaluate   func(request Request, context Context) Evaluation
	Standing   func(context Context) Profile
	ForCommand func(request Request, context Context) *Profile
	Inspect    func(output Output, context Context) OutputEvaluation
	Brief      func(context Context) string
}

// Export makes a policy the one of this component; call it in `init`.
func Export(policy Policy) {
	export_portcullis_policy_lifecycle.Describe = policy.describe
	export_portcullis_policy_lifecycle.Configure = policy.configure
	if policy.Evaluate != nil {
		export_portcullis_policy_evaluator.Evaluate = policy.Evaluate
	}
	if policy.Standing != nil {
		export_portcullis_policy_confinement.Standing = policy.Standing
	}
	if policy.ForCommand != nil {
		export_portcullis_policy_confinement.ForCommand = policy.forCommand
	}
	if policy.Inspect != nil {
		export_portcullis_policy_output_filter.Inspect = policy.Inspect
	}
	if policy.Brief != nil {
		export_portcullis_policy_orientation.Brief = policy.Brief
	}
}

func (policy Policy) describe() lifecycle.Descriptor {
	about := lifecycle.Descriptor{
		Id: policy.ID, Version: policy.Version, Title: policy.Title,
		Handles: policy.Handles, ConfigSchema: policy.ConfigSchema,
	}
	for _, rule := range policy.Rules {
		about.Rules = append(about.Rules, lifecycle.RuleInfo{Id: rule.ID, Title: rule.Title})
	}
	return about
}

func (policy Policy) configure(config string) wit.Result[wit.Unit, []ConfigError] {
	if policy.Configure != nil {
		if errors := policy.Configure([]byte(config)); len(errors) > 0 {
			return wit.Err[wit.Unit](errors)
		}
	}
	return wit.Ok[wit.Unit, []ConfigError](wit.Unit{})
}

func (policy Policy) forCommand(request Request, context Context) wit.Option[Profile] {
	if profile := policy.ForCommand(request, context); profile != nil {
		return wit.Some(*profile)
	}
	return wit.None[Profile]()
}

func answer(verdict types.Verdict, rule, reason string, severity uint8) Evaluation {
	return Evaluation{Verdict: verdict, Cause: types.Cause{Rule: rule, Reason: reason, Severity: severity}}
}

// Abstain has no opinion.
func Abstain() Evaluation { return answer(types.MakeVerdictAbstain(), "", "", types.SeverityInfo) }

// Allow allows it, if the host can meet the obligations.
func Allow(rule, reason string, obligations ...Obligation) Evaluation {
	return answer(types.MakeVerdictAllow(types.Allowance{Obligations: obligations}), rule, reason, types.SeverityInfo)
}

// Ask asks the user; the offers are the answers that they can choose, the narrowest first.
func Ask(rule, reason, title string, offers ...Offer) Evaluation {
	question := types.Question{Title: title, Options: offers}
	return answer(types.MakeVerdictAsk(question), rule, reason, types.SeverityMedium)
}

// Deny denies it; the hint tells the model what it may do instead.
func Deny(rule, reason, hint string) Evaluation {
	denial := types.Denial{Hint: wit.Some(hint)}
	return answer(types.MakeVerdictDeny(denial), rule, reason, types.SeverityHigh)
}

// Notify shows a text to the user.
func Notify(text string) Obligation { return types.MakeObligationNotify(text) }

// Advise shows a text to the model, with the result.
func Advise(text string) Obligation { return types.MakeObligationAdvise(text) }

// RewriteScript runs another script instead; `rewrites = true` under `[capabilities]` in `policy.toml`.
func RewriteScript(script string) Obligation { return types.MakeObligationRewriteScript(script) }

// RewriteInput calls the tool with another input, as JSON; it needs the same.
func RewriteInput(input string) Obligation { return types.MakeObligationRewriteInput(input) }

// HostObligation is an obligation of this host, `host:reserve` for example. It panics on a value that is no JSON.
func HostObligation(name string, value any) Obligation {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return types.MakeObligationOther(types.Attribute{Name: name, Value: string(text)})
}

// OfferExact is a grant for exactly this request.
func OfferExact(label string, scope uint8) Offer {
	return Offer{Label: label, Scope: scope, Pattern: types.MakeGrantPatternExact()}
}

// OfferFile is a grant for files.
func OfferFile(label string, scope uint8, pattern FilePattern, rights uint8) Offer {
	path := types.PathPattern{Pattern: pattern, Rights: rights}
	return Offer{Label: label, Scope: scope, Pattern: types.MakeGrantPatternPath(path)}
}

// OfferHost is a grant for a host; without ports for all of them.
func OfferHost(label string, scope uint8, host string, ports ...uint16) Offer {
	return Offer{Label: label, Scope: scope, Pattern: types.MakeGrantPatternNetwork(target(host, ports))}
}

func outputAnswer(verdict types.OutputVerdict, rule, reason string) OutputEvaluation {
	return OutputEvaluation{Verdict: verdict, Cause: types.Cause{Rule: rule, Reason: reason}}
}

// Pass says that an output is harmless.
func Pass(rule, reason string) OutputEvaluation {
	return outputAnswer(types.MakeOutputVerdictPass(), rule, reason)
}

// Replace shows other blocks to the model, of the same number and kinds; `output = true` under `[capabilities]`.
func Replace(rule, reason string, blocks []Block) OutputEvaluation {
	return outputAnswer(types.MakeOutputVerdictReplace(blocks), rule, reason)
}

// Withhold shows only the reason to the model.
func Withhold(rule, reason string) OutputEvaluation {
	return outputAnswer(types.MakeOutputVerdictWithhold(), rule, reason)
}

// Text is a block of text for Replace.
func Text(text string) Block { return types.MakeContentBlockText(text) }

// Exact is a path, Tree a directory with everything below it, and Glob a pattern as in gitignore.
func Exact(path string) FilePattern { return types.MakeFilePatternExact(path) }

// Tree is a directory with everything below it.
func Tree(path string) FilePattern { return types.MakeFilePatternTree(path) }

// Glob is a pattern for whole paths, as in gitignore.
func Glob(pattern string) FilePattern { return types.MakeFilePatternGlob(pattern) }

// Named is a pattern for the last component of paths below a directory.
func Named(below, glob string) FilePattern {
	return types.MakeFilePatternName(types.NamePattern{Below: below, Glob: glob})
}

// AllowFile, AskFile and DenyFile are rules on files.
func AllowFile(id string, pattern FilePattern, rights uint8, reason string) FileRule {
	return FileRule{Id: id, Pattern: pattern, Rights: rights, Effect: rules.EffectAllow, Reason: reason}
}

// AskFile is a rule that asks the user.
func AskFile(id string, pattern FilePattern, rights uint8, reason string) FileRule {
	return FileRule{Id: id, Pattern: pattern, Rights: rights, Effect: rules.EffectAsk, Reason: reason}
}

// DenyFile is a rule that denies.
func DenyFile(id string, pattern FilePattern, rights uint8, reason string) FileRule {
	return FileRule{Id: id, Pattern: pattern, Rights: rights, Effect: rules.EffectDeny, Reason: reason}
}

func target(host string, ports []uint16) types.NetworkPattern {
	pattern := types.NetworkPattern{Host: host, Ports: types.MakePortSetEvery()}
	if len(ports) > 0 {
		pattern.Ports = types.MakePortSetThese(ports)
	}
	return pattern
}

func hostRule(effect uint8, id, host, reason string, ports []uint16) NetworkRule {
	return NetworkRule{Id: id, Target: target(host, ports), Program: "*", Effect: effect, Reason: reason}
}

// AllowHost, AskHost and DenyHost are rules on hosts; without ports for all of them.
func AllowHost(id, host, reason string, ports ...uint16) NetworkRule {
	return hostRule(rules.EffectAllow, id, host, reason, ports)
}

// AskHost is a rule that asks the user.
func AskHost(id, host, reason string, ports ...uint16) NetworkRule {
	return hostRule(rules.EffectAsk, id, host, reason, ports)
}

// DenyHost is a rule that denies.
func DenyHost(id, host, reason string, ports ...uint16) NetworkRule {
	return hostRule(rules.EffectDeny, id, host, reason, ports)
}

// Matches says how surely a request runs a command that a pattern describes, for example `git push --force`.
func Matches(request Request, pattern string) Match {
	var command types.CommandExecution
	switch request.Action.Tag() {
	case types.ActionCommand:
		command = request.Action.Command()
	case types.ActionEscalation:
		command = request.Action.Escalation()
	default:
		return No
	}
	if command.Parsed.Tag() == wit.ResultErr {
		return Maybe
	}
	script := command.Parsed.Ok()
	best := No
	if script.Features&(types.ScriptFeaturesDynamic|types.ScriptFeaturesRedefinition) != 0 {
		best = Maybe
	}
	for _, one := range script.Commands {
		words := make([]CommandWord, len(one.Argv))
		for index, word := range one.Argv {
			words[index] = CommandWord{word.Value, word.Literal}
		}
		best = max(best, MatchesWords(pattern, words))
	}
	return best
}

// Runs says whether a request certainly runs a command that a pattern describes.
func Runs(request Request, pattern string) bool { return Matches(request, pattern) == Yes }

// CouldRun says whether a request runs, or may run, a command that a pattern describes.
func CouldRun(request Request, pattern string) bool { return Matches(request, pattern) != No }

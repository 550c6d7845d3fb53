// Protects files by name, and keeps the agent from publishing.
//
// An example to change: rules (`Standing`) hold for tools and commands, verdicts
// (`Evaluate`) are for what rules cannot say.
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"policy/portcullis"
)

const schema = `{"type": "object", "additionalProperties": false, "properties": {
  "keep": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": ["LICENSE"]}}}`

var publishing = []string{"npm publish", "cargo publish"}

var config = struct{ Keep []string }{}

func main() {}

func init() {
	portcullis.Export(portcullis.Policy{
		ID:      "__ID__",
		Version: "0.1.0",
		Title:   "Files that stay, and no publishing",
		Handles: portcullis.Command,
		Rules: []portcullis.Rule{
			{ID: "files.keep", Title: "these files stay as they are"},
			{ID: "command.publish", Title: "publishing is for people"},
			{ID: "command.unread", Title: "what may publish is asked for"},
		},
		ConfigSchema: schema,
		Configure:    configure,
		Standing:     standing,
		Evaluate:     evaluate,
	})
}

func configure(text []byte) []portcullis.ConfigError {
	config.Keep = []string{"LICENSE"}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return []portcullis.ConfigError{{Message: err.Error()}}
	}
	var errors []portcullis.ConfigError
	for index, name := range config.Keep {
		if name == "" || strings.HasPrefix(name, "/") {
			pointer := fmt.Sprintf("/keep/%d", index)
			errors = append(errors, portcullis.ConfigError{Pointer: pointer, Message: "write a path below the working directory"})
		}
	}
	return errors
}

func standing(context portcullis.Context) portcullis.Profile {
	profile := portcullis.Profile{}
	if len(context.Workspace.Roots) == 0 {
		return profile
	}
	for index, name := range config.Keep {
		path := portcullis.Exact(context.Workspace.Roots[0] + "/" + name)
		rule := portcullis.DenyFile("files.keep", path, portcullis.Write, "this file stays as it is")
		rule.Setting = fmt.Sprintf("/keep/%d", index)
		profile.Files = append(profile.Files, rule)
	}
	return profile
}

func evaluate(request portcullis.Request, _ portcullis.Context) portcullis.Evaluation {
	for _, pattern := range publishing {
		if portcullis.Runs(request, pattern) {
			return portcullis.Deny("command.publish", "publishing is for people",
				"prepare the release and ask the user to publish it")
		}
	}
	for _, pattern := range publishing {
		if portcullis.CouldRun(request, pattern) {
			return portcullis.Ask("command.unread", "the command may publish something", "Run it all the same?")
		}
	}
	return portcullis.Abstain()
}

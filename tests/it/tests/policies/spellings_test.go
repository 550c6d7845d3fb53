package portcullis

import (
	"encoding/json"
	"os"
	"testing"
)

// TestSpellings runs the shared test cases.
func TestSpellings(t *testing.T) {
	text, err := os.ReadFile("spellings.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Pattern, Expect, Line string
		Hides                 bool
		Commands              [][][2]any
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	names := [...]string{"no", "maybe", "yes"}
	for _, item := range cases {
		best := No
		if item.Hides {
			best = Maybe
		}
		for _, command := range item.Commands {
			var words []CommandWord
			for _, word := range command {
				words = append(words, CommandWord{word[0].(string), word[1].(bool)})
			}
			best = max(best, MatchesWords(item.Pattern, words))
		}
		if names[best] != item.Expect {
			t.Errorf("`%s` for `%s`: %s", item.Pattern, item.Line, names[best])
		}
	}
	t.Logf("%d cases", len(cases))
}

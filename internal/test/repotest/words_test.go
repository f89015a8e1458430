package repotest_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metaphors are words that are not terms of the field, with the terms to use instead. An identifier is
// split into words at its capitals, so "string" has no "ring".
var metaphors = map[string]string{
	"aside":       "quarantined",
	"census":      "address cache",
	"concealer":   "redactor",
	"enlist":      "register",
	"gently":      "in small steps",
	"dear":        "fee cap exceeded",
	"deed":        "transaction, action",
	"discharge":   "deregister",
	"doubt":       "verify, suspect",
	"doubtful":    "suspect",
	"flight":      "broadcast state; in flight is allowed",
	"intend":      "enqueue intent",
	"liar":        "byzantine, dishonest",
	"lie":         "fault, false answer",
	"misfit":      "misconfigured",
	"obstacle":    "blocker",
	"outbid":      "replacement underpriced",
	"padded":      "in batches",
	"poke":        "wake",
	"presentable": "sanitize",
	"reckon":      "settle, recompute",
	"ring":        "round robin",
	"roster":      "queue cache",
	"sight":       "observation",
	"sizer":       "limit",
	"sleeper":     "timer",
	"standing":    "state, receipts",
	"stopwatch":   "trace",
	"superseded":  "nonce too low",
	"survey":      "resync, refresh",
	"sweeper":     "cleaner",
	"tidings":     "events",
	"unfunded":    "insufficient funds",
	"unsure":      "no quorum",
	"witness":     "vote",
	"workbook":    "transfer batch",
}

// TestIdentifiersUseTheFieldsTerms looks for metaphors in the names that the Go
// code declares and uses, and in the names of its files.
func TestIdentifiersUseTheFieldsTerms(t *testing.T) {
	seen := make(map[string]bool)
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if term := metaphor(strings.TrimSuffix(filepath.Base(name), ".go")); term != "" {
			t.Errorf("%s: name the file by the field's term: %s", name, term)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			identifier, ok := n.(*ast.Ident)
			if !ok || seen[identifier.Name] {
				return true
			}
			seen[identifier.Name] = true
			if term := metaphor(identifier.Name); term != "" {
				t.Errorf("%s: %s: use the field's term: %s", set.Position(identifier.Pos()), identifier.Name, term)
			}
			return true
		})
	})
}

var wordsOfNames = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// metaphor returns the terms for the first metaphor in a name, or "".
func metaphor(name string) string {
	words := wordsOfNames.FindAllString(name, -1)
	for i, word := range words {
		word = strings.ToLower(word)
		if word == "flight" && i > 0 && strings.EqualFold(words[i-1], "in") {
			continue
		}
		for _, form := range []string{word, strings.TrimSuffix(word, "s")} {
			if term := metaphors[form]; term != "" {
				return term
			}
		}
	}
	return ""
}

// phrases are not allowed in comments: a plain verb or preposition is better.
var phrases = regexp.MustCompile(`(?i)\b(beside|be it|tells?|told|whoever|is none|are none|stands?)\b`)

// TestCommentsArePlain looks for phrases in comments over which a reader stumbles.
func TestCommentsArePlain(t *testing.T) {
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if filepath.Base(name) == "words_test.go" {
			return
		}
		for _, group := range file.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, at := range phrases.FindAllStringIndex(text, -1) {
				t.Errorf("%s: %q: say it plainly", set.Position(group.Pos()), text[max(0, at[0]-30):min(len(text), at[1]+30)])
			}
		}
	})
}

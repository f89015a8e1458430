package repotest_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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

// maxDecisionLines and maxDecisionColumns bound the text of a decision record.
const maxDecisionLines, maxDecisionColumns = 40, 120

// TestLinks follows the links between the documents of the repository.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range files(t, ".md") {
		for _, found := range link.FindAllStringSubmatch(prose(read(t, name)), -1) {
			path, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(path, ":") {
				continue // elsewhere
			}
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", name, found[1], err)
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, found[1])
			}
		}
	}
}

// TestDecisionsAreIndexed compares the index of the decision records with the records: their titles, in the order of
// their numbers.
func TestDecisionsAreIndexed(t *testing.T) {
	var want []string
	taken := make(map[string]string)
	for _, name := range files(t, ".md") {
		dir, file := filepath.Split(name)
		if dir != filepath.FromSlash("docs/decisions/") || file == "README.md" {
			continue
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(read(t, name), "# "), "\n")
		number, _, _ := strings.Cut(title, ". ")
		if taken[number] != "" {
			t.Errorf("%s has the number of %s; give it the next free number", file, taken[number])
		}
		taken[number] = file
		if !strings.HasPrefix(file, number+"-") {
			t.Errorf("%s has the title %q; begin both with the same number", file, title)
		}
		want = append(want, "- ["+title+"]("+file+")")
	}
	slices.Sort(want)
	index := regexp.MustCompile(`(?m)^- \[.*$`).FindAllString(read(t, "docs/decisions/README.md"), -1)
	if diff := cmp.Diff(want, index); diff != "" {
		t.Errorf("records (-) and lines of docs/decisions/README.md (+):\n%s", diff)
	}
}

// TestDecisionsAreShort bounds the lines of a decision record: results of runs belong in docs/performance.md.
func TestDecisionsAreShort(t *testing.T) {
	for _, name := range files(t, ".md") {
		if filepath.Dir(name) != filepath.FromSlash("docs/decisions") || filepath.Base(name) == "README.md" {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(read(t, name), "\n"), "\n")
		if len(lines) > maxDecisionLines {
			t.Errorf("%s has %d lines; shorten it to %d", name, len(lines), maxDecisionLines)
		}
		for i, line := range lines {
			if utf8.RuneCountInString(line) > maxDecisionColumns {
				t.Errorf("%s:%d: wrap the line at %d columns", name, i+1, maxDecisionColumns)
			}
		}
	}
}

// prose returns a document without its blocks of code.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
}

// anchors returns the anchors that GitHub gives a document's headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(text), -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		found[strings.ReplaceAll(kept, " ", "-")] = true
	}
	return found
}

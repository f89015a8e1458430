package repotest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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

// TestDecisionsAreIndexed wants each record of a decision in their index.
func TestDecisionsAreIndexed(t *testing.T) {
	index := read(t, "docs/decisions/README.md")
	records, taken := 0, make(map[string]string)
	for _, name := range files(t, ".md") {
		dir, file := filepath.Split(name)
		if dir != filepath.FromSlash("docs/decisions/") || file == "README.md" {
			continue
		}
		records++
		title, _, _ := strings.Cut(strings.TrimPrefix(read(t, name), "# "), "\n")
		number, title, _ := strings.Cut(title, ". ")
		if taken[number] != "" {
			t.Errorf("%s has the number of %s", file, taken[number])
		}
		taken[number] = file
		if !strings.HasPrefix(file, number+"-") || !strings.Contains(index, "| ["+number+"]("+file+") | "+title+" | ") {
			t.Errorf("docs/decisions/README.md lacks %s, %q", file, title)
		}
	}
	if rows := strings.Count(index, "\n| ["); rows != records {
		t.Errorf("docs/decisions/README.md lists %d records of %d", rows, records)
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

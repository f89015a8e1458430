package repotest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesAreDescribed wants each package below internal in the table of
// docs/architecture.md.
func TestPackagesAreDescribed(t *testing.T) {
	text := read(t, "docs/architecture.md")
	dirs, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !strings.Contains(text, "`internal/"+dir.Name()+"`") {
			t.Errorf("docs/architecture.md lacks internal/%s", dir.Name())
		}
	}
}

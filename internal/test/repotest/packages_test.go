package repotest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// maxFolders is how many folders internal has at most, without those below them.
const maxFolders = 25

// TestPackagesAreDescribed wants each folder below internal in the table of docs/architecture.md; of folders that only
// hold others, these.
func TestPackagesAreDescribed(t *testing.T) {
	text := read(t, "docs/architecture.md")
	folders, _ := list(t, "internal")
	if len(folders) > maxFolders {
		t.Errorf("internal has %d folders; want at most %d", len(folders), maxFolders)
	}
	for len(folders) > 0 {
		name := folders[0]
		below, files := list(t, name)
		if folders = folders[1:]; files == 0 {
			folders = append(folders, below...)
		} else if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/architecture.md lacks %s", name)
		}
	}
}

// list returns the folders in a folder, and how many files are in it.
func list(t *testing.T, folder string) (folders []string, files int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	expect.OK(t, err)
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, folder+"/"+e.Name())
		} else {
			files++
		}
	}
	return folders, files
}

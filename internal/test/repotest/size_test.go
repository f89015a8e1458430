package repotest_test

import (
	"strings"
	"testing"
)

// maxLines is the largest number of lines of a production file. A longer one holds more than one idea.
const maxLines = 400

// TestFilesAreShort wants each production file to have at most maxLines lines.
func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".gen.go") {
			continue
		}
		if n := strings.Count(read(t, name), "\n"); n > maxLines {
			t.Errorf("%s has %d lines; split it, want at most %d", name, n, maxLines)
		}
	}
}

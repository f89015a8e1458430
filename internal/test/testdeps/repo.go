package testdeps

import (
	"os"
	"path/filepath"
)

// Repo returns the path of a file of the repository, which is named from its top.
// It panics outside of the repository. Tests that go up by ".." instead fail when their package moves.
func Repo(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "openapi.yaml")); err == nil {
			return filepath.Join(dir, name)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("testdeps: this test runs outside of the repository")
		}
		dir = parent
	}
}

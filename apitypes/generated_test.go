package apitypes_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraTypesAreFresh generates the types again and compares them with the file.
func TestExtraTypesAreFresh(t *testing.T) {
	generate := exec.CommandContext(t.Context(), "go", "run", "generate.go")
	var problems bytes.Buffer
	generate.Stderr = &problems
	want, err := generate.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	got := expect.Must(os.ReadFile("types.gen.go"))
	if !bytes.Equal(got, want) {
		t.Error("types.gen.go is not what openapi.yaml gives: run make generate")
	}
}

package typescript_test

import (
	"maps"
	"os"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestExtraEveryOperationHasAMethod compares the methods of Quittance with the operations of openapi.yaml, which have the
// same names.
func TestExtraEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	doc := expect.Must(openapi3.NewLoader().LoadFromFile(testdeps.Repo("openapi.yaml")))
	methods := map[string]bool{
		"receiveNotice": true, "probeNotices": true, // called by a transfer provider
		"submitAuthorization": true, "getAuthorization": true, // called by a payer
		"getX402Supported": true, "verifyX402": true, "settleX402": true, // called by the packages of the x402 protocol
	}
	for _, file := range []string{"src/client.ts", "src/events.ts", "src/administration.ts"} {
		maps.Copy(methods, declared(t, file, `(?m)^  (?:async )?\*?(\w+)\(`))
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if !methods[operation.OperationID] {
				t.Errorf("Quittance has no method %s for %s %s", operation.OperationID, method, path)
			}
		}
	}
}

// declared returns the first submatches of a pattern in a file.
func declared(t *testing.T, file, pattern string) map[string]bool {
	t.Helper()
	text := expect.Must(os.ReadFile(file))
	found := make(map[string]bool)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found[match[1]] = true
	}
	return found
}

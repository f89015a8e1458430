package client_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// otherNames are the methods that call operations of openapi.yaml under another name than methodOf gives.
var otherNames = map[string]string{
	"countInbox": "InboxCounts", "releaseMerchantAddress": "ReleaseAddress", "putMerchantLogo": "SetMerchantLogo",
	"receiveNotice": "", "probeNotices": "", // called by a transfer provider
	"submitAuthorization": "", "getAuthorization": "", // called by a payer
}

// methodOf returns the method that calls an operation: getInvoice has Invoice, and createInvoice CreateInvoice.
func methodOf(operation string) string {
	if name, ok := otherNames[operation]; ok {
		return name
	}
	name := strings.TrimPrefix(strings.TrimPrefix(operation, "get"), "list")
	return strings.ToUpper(name[:1]) + name[1:]
}

// TestEveryOperationHasAMethod compares the methods with the operations of openapi.yaml.
// sdk/typescript has a test like this one.
func TestEveryOperationHasAMethod(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile(testdeps.Repo("openapi.yaml"))
	expect.OK(t, err)
	known := make(map[string]bool)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			known[operation.OperationID] = true
			name := methodOf(operation.OperationID)
			if _, has := reflect.TypeFor[*client.Client]().MethodByName(name); name != "" && !has {
				t.Errorf("package client has no method %s for %s, %s %s", name, operation.OperationID, method, path)
			}
		}
	}
	for operation := range otherNames {
		if !known[operation] {
			t.Errorf("openapi.yaml has no operation %s", operation)
		}
	}
}

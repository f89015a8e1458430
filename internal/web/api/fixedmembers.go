package api

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
)

// fixedMembers are the members of an invoice that a change of it cannot set, and draft,
// which is set when it is created.
var fixedMembers = slices.DeleteFunc(append(memberNames[apitypes.Invoice](), "draft"), func(name string) bool {
	return slices.Contains(memberNames[apitypes.UpdateInvoiceRequest](), name)
})

// memberNames returns the JSON names of the members of a structure.
func memberNames[T any]() (names []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// checkFixedMembers returns an *invoice.FieldError if a change of an invoice would set one of
// fixedMembers to another value. A client may send the whole invoice back.
func (a *API) checkFixedMembers(ctx context.Context, id string, change object) error {
	if !slices.ContainsFunc(fixedMembers, func(name string) bool { _, named := change[name]; return named }) {
		return nil
	}
	inv, err := a.visibleInvoice(ctx, id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(apiconv.Invoice(inv))
	if err != nil {
		return fmt.Errorf("encode the present invoice: %w", err)
	}
	present, err := parseObject(text)
	if err != nil {
		return fmt.Errorf("parse the present invoice: %w", err)
	}
	present["draft"] = inv.Status == invoice.Drafted
	for _, name := range fixedMembers {
		if value, named := change[name]; named && !reflect.DeepEqual(value, present[name]) {
			return invalidField(name, "cannot be changed; leave it out")
		}
	}
	return nil
}

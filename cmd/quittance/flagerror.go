package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/invoice"
)

// nameFlags returns the error of a command about a field of the interface as one about the flag that sets the field.
// Other errors are returned unchanged.
func nameFlags(cmd *cobra.Command, err error) error {
	var field, detail string
	var answer *client.Error
	var wrong *invoice.FieldError
	switch {
	case errors.As(err, &answer):
		detail = strings.TrimSuffix(answer.Detail, ".")
		switch answer.Code { //nolint:exhaustive // the others name no field
		case apitypes.CodeInvalidField:
			field = answer.Field
		case apitypes.CodeInvalidChain:
			field = "chainKey"
		case apitypes.CodeInvalidStatus:
			field = "status"
		}
	case errors.As(err, &wrong):
		field, detail = wrong.Field, wrong.Error()
	}
	what, isAbout := strings.CutPrefix(detail, field+" ")
	flag := flagOf(cmd, field)
	if flag == "" || !isAbout {
		return err
	}
	return errors.New(flag + " " + member.ReplaceAllStringFunc(what, func(name string) string {
		if other := flagOf(cmd, name); other != "" {
			return other
		}
		return name
	}))
}

// member matches the name of a member of the interface that has two words or more.
var member = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+\b`)

var capital = regexp.MustCompile(`[A-Z]`)

// memberFlags are the flags of members whose names differ from the flags'.
var memberFlags = map[string][]string{
	"allowedAddresses": {"allow-address"}, "chainKey": {"chain"}, "defaultAddresses": {"default-address"}, "embedOrigins": {"embed-origin"},
	"expiresAt": {"expires-in", "expires"}, "failedOnly": {"failed"}, "groupBy": {"by"}, "invoiceId": {"invoice"}, "lineItems": {"item"},
	"maxAmount": {"max"}, "merchantAddress": {"to"}, "merchantId": {"merchant"}, "minAmount": {"min"}, "overlapSeconds": {"overlap"},
	"paymentId": {"payment"}, "returnHosts": {"return-host"},
}

// flagOf returns the flag of a command that sets a field, such as lineItems[2].amount, with its dashes, or "".
func flagOf(cmd *cobra.Command, field string) string {
	top, _, _ := strings.Cut(field, ".")
	top, _, _ = strings.Cut(top, "[")
	kebab := strings.ToLower(capital.ReplaceAllString(top, "-$0"))
	for _, name := range append(memberFlags[top], kebab) {
		if name != "" && cmd.Flags().Lookup(name) != nil {
			return "--" + name
		}
	}
	return ""
}

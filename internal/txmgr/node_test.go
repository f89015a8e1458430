package txmgr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/chain"
)

func TestAnswersOfNodes(t *testing.T) {
	for text, want := range map[string]string{
		"already known":           "known",
		"Known transaction: 0xab": "known",
		"AlreadyKnown":            "known",
		"transaction with the same hash was already imported": "known",
		"nonce too low: next nonce 5, tx nonce 4":             "nonce too low",
		"OldNonce":                            "nonce too low",
		"replacement transaction underpriced": "underpriced",
		"ReplacementNotAllowed":               "underpriced",
		"insufficient funds for gas * price + value: balance 0, tx cost 5, overshot 5": "insufficient funds",
		"execution reverted: AccessControl":                                            "refused",
		"gas required exceeds allowance (30000000)":                                    "refused",
		"VM Exception while processing transaction: revert":                            "refused",
		"transaction underpriced: tip needed 1, tip permitted 0":                       "",
		"the method eth_sendRawTransaction does not exist/is not available":            "",
		"future transaction tries to replace pending":                                  "",
	} {
		err := fmt.Errorf("method: %w", answer(text))
		got := ""
		for name, is := range map[string]bool{
			"known": alreadyKnown(err), "nonce too low": nonceTooLow(err), "underpriced": replacementUnderpriced(err), "insufficient funds": insufficientFunds(err), "refused": reverted(err),
		} {
			if is {
				got += name
			}
		}
		if got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
		// None of them has a pool leave its provider alone.
		if _, limited := chain.IsRateLimit(err); limited {
			t.Errorf("%q is taken for a provider that was asked too often", text)
		}
		// Words that did not come from the node mean nothing.
		if err := errors.New(text); alreadyKnown(err) || nonceTooLow(err) || replacementUnderpriced(err) || insufficientFunds(err) || reverted(err) {
			t.Errorf("%q is taken for an answer, though no node gave it", text)
		}
	}
}

func TestStatusIsReadAsTheContractNumbersIt(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(4)
	w.external(w.dev.Keys.Operator, pack("open", ids[1:2]))
	w.external(w.dev.Keys.Operator, pack("close", ids[3:4]))
	terms := w.pay()
	w.seal(1)
	w.wantStatus(statusNone, ids[0])
	w.wantStatus(statusOpen, ids[1])
	w.wantStatus(statusPaid, terms)
	w.wantStatus(statusClosed, ids[3])
}

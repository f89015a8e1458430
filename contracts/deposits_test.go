package contracts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// depositVectors are the vectors of docs/deposits.md. They were computed by another program.
var depositVectors = []struct{ factory, merchant, commitmentID, implementation, address string }{
	{
		"0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"0xf50018c19eb432afb27ae507ee3561502278b4cb6e8462cce89832eb8afb2104",
		"0xa16E02E87b7454126E5E10d957A927A7F5B5d2be", "0x9Cb4aB670769679475648191DB5872d181519F28",
	},
	{
		"0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"0x0000000000000000000000000000000000000000000000000000000000000000",
		"0xa16E02E87b7454126E5E10d957A927A7F5B5d2be", "0xd4fd272b5d3831135F2348030B06eca55C5812Dd",
	},
	{
		"0xFFfFfFffFFfffFFfFFfFFFFFffFFFffffFfFFFfF", "0x0000000000000000000000000000000000000001",
		"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0xa34794Dff7e5d2B06f5B98F3B27AAe9B919F3469", "0x7276c2348259C288662DD09BDBE64019419B609d",
	},
}

func TestDepositAddress(t *testing.T) {
	for _, v := range depositVectors {
		factory, merchant, id := common.HexToAddress(v.factory), common.HexToAddress(v.merchant), common.HexToHash(v.commitmentID)
		if got := contracts.DepositImplementation(factory); got != common.HexToAddress(v.implementation) {
			t.Errorf("implementation of %s is %s, want %s", v.factory, got, v.implementation)
		}
		if got := contracts.DepositAddress(factory, merchant, id); got != common.HexToAddress(v.address) {
			t.Errorf("deposit address is %s, want %s", got, v.address)
		}
	}
}

// TestDepositDocs expects docs/deposits.md to have the vectors and the hashes of the code.
func TestDepositDocs(t *testing.T) {
	text, err := os.ReadFile(testdeps.Repo("docs/deposits.md"))
	expect.OK(t, err)
	rows := []string{
		fmt.Sprintf("| `DepositFactory` | `%s` |", contracts.DepositFactoryCodeHash),
		fmt.Sprintf("| its `implementation()` | `%s` |", contracts.DepositCodeHash),
		fmt.Sprintf("| `AuthorizationRelay` | `%s` |", contracts.AuthorizationRelayCodeHash),
	}
	for _, v := range depositVectors {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | `%s` | `%s` |", v.factory, v.merchant, v.commitmentID, v.address))
	}
	for _, row := range rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/deposits.md lacks the row %s", row)
		}
	}
}

package contracts_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// mock is a contract of test/mocks on the chain.
type mock struct {
	*world
	address common.Address
	abi     abi.ABI
}

// mock deploys a contract of test/mocks. Its constructor takes holder, or no argument.
func (w *world) mock(name string, holder common.Address) mock {
	w.Helper()
	address, parsed := w.deploy(name, holder)
	return mock{w, address, parsed}
}

// do sends a call that must succeed.
func (m mock) do(method string, arguments ...any) {
	m.Helper()
	receipt := m.transactWithGas(m.Keys.Operator, m.address, pack(m.world, m.abi, method, arguments...), params.MaxTxGas)
	if receipt.Status != types.ReceiptStatusSuccessful {
		m.Fatalf("%s failed", method)
	}
}

// is returns the result of a method that returns a bool.
func (m mock) is(method string) bool {
	m.Helper()
	return common.BytesToHash(m.call(m.address, pack(m.world, m.abi, method))).Big().Sign() != 0
}

// hostileManners and receiverManners are the manners of HostileToken and CoinReceiver, in the order of their enums.
var (
	hostileManners = []string{
		"Honest", "ReturnsNothing", "ReturnsMuch", "ReturnsFalse", "MovesNothing", "Reverts", "RevertsWithMuch", "BurnsGas",
		"HidesBalances", "BurnsAtBalances", "CallsBack",
	}
	receiverManners = []string{"Takes", "Refuses", "RefusesWithMuch", "TakesWithMuch", "BurnsGas", "CallsBack", "SendsBack"}
)

// hostileToken is a HostileToken.
type hostileToken struct{ mock }

// hostile deploys a HostileToken with all tokens at the payer.
func (w *world) hostile() hostileToken {
	w.Helper()
	return hostileToken{w.mock("HostileToken", w.payer)}
}

func (h hostileToken) behave(manner string) {
	h.Helper()
	h.do("behave", uint8(slices.Index(hostileManners, manner)))
}

// methodsOf returns the names of a contract's functions, sorted.
func methodsOf(parsed abi.ABI) []string { return slices.Sorted(maps.Keys(parsed.Methods)) }

// opcodes returns the instructions of code, without pushed data.
func opcodes(t *testing.T, hex string) []string {
	t.Helper()
	code := common.FromHex(hex)
	if len(code) == 0 {
		t.Fatal("there is no code")
	}
	var all []string
	for i := 0; i < len(code); i++ {
		op := vm.OpCode(code[i])
		all = append(all, op.String())
		if op.IsPush() {
			i += int(op) - int(vm.PUSH1) + 1
		}
	}
	return all
}

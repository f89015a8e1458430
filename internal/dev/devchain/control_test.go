package devchain

import (
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/internal/test/expect"
)

func TestHold(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := start(t, Config{Now: func() time.Time { return now }})
	now = now.Add(time.Minute)
	c.Hold(time.Hour)
	if tick(t, c) != 0 {
		t.Error("a block was sealed while they are held")
	}
	seal(t, c)
	now = now.Add(time.Minute)
	c.Hold(0)
	if tick(t, c) != 1 {
		t.Error("no block was sealed after they were held")
	}
}

// TestReorg checks that the transactions of the replaced blocks are sealed again, or dropped.
func TestReorg(t *testing.T) {
	for _, drop := range []bool{false, true} {
		c := start(t, Config{})
		seal(t, c)
		tx, err := c.SendToken(t.Context(), c.Keys.Payer, Address(c.Keys.Merchant), big.NewInt(7), nil)
		expect.OK(t, err)
		seal(t, c)
		was, err := c.Mined(t.Context(), tx)
		expect.OK(t, err)
		expect.OK(t, c.Reorg(t.Context(), 2, drop))
		if _, err := c.client.TransactionReceipt(t.Context(), tx); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("drop %t: the transaction's receipt is still there: %v", drop, err)
		}
		expect.Equal(t, c.head().Number.Uint64(), was.BlockNumber.Uint64()+1, "drop %t: the head is", drop)
		seal(t, c)
		is, err := c.client.TransactionReceipt(t.Context(), tx)
		switch {
		case drop && !errors.Is(err, ethereum.NotFound):
			t.Errorf("the dropped transaction is in a block: %v", err)
		case !drop && (err != nil || is.BlockHash == was.BlockHash):
			t.Errorf("the transaction was not sealed again: %v", err)
		}
	}
}

// TestRefuse checks that the JSON-RPC port is closed, and reopened at the same address.
func TestRefuse(t *testing.T) {
	c := start(t, Config{})
	url := c.RPCURL()
	connected := dial(t, url)
	expect.OK(t, c.Refuse(500*time.Millisecond))
	expect.Error(t, ErrRefusing, "a second call returned")(c.Refuse(time.Second))
	if _, err := connected.BlockNumber(t.Context()); err == nil {
		t.Error("an old connection still works")
	}
	if _, err := dial(t, url).BlockNumber(t.Context()); err == nil {
		t.Error("the port is open")
	}
	wantOpenAgain(t, c, url)
	expect.Equal(t, c.RPCURL(), url, "the node is now at")
}

// TestRefuseWhileThePortIsTaken has another program listen on the port when it should be reopened. It is reopened once
// that program ends.
func TestRefuseWhileThePortIsTaken(t *testing.T) {
	said := make(lines, 100)
	c := start(t, Config{Logger: slog.New(slog.NewTextHandler(said, nil))})
	url := c.RPCURL()
	expect.OK(t, c.Refuse(time.Second))
	other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	expect.OK(t, err)
	for line := ""; !strings.Contains(line, "will retry"); {
		line = <-said
	}
	expect.OK(t, other.Close())
	wantOpenAgain(t, c, url)
}

// wantOpenAgain waits until the port is reopened, and fails the test unless the node answers at the URL.
func wantOpenAgain(t *testing.T, c *Chain, url string) {
	t.Helper()
	c.refusing.Lock()   // it is free when the port is reopened
	c.refusing.Unlock() //nolint:staticcheck // the critical section is empty
	if _, err := dial(t, url).BlockNumber(t.Context()); err != nil {
		t.Errorf("%s does not answer again: %v", url, err)
	}
}

// lines is a writer that sends each line of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestRefuseAndClose closes a chain that refuses requests.
func TestRefuseAndClose(t *testing.T) {
	expect.OK(t, start(t, Config{}).Refuse(time.Hour))
}

func dial(t *testing.T, url string) *ethclient.Client {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), url)
	expect.OK(t, err)
	t.Cleanup(client.Close)
	return client
}

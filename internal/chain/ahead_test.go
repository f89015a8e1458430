package chain

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestAhead has nodes with heads at different heights, each of which is reported twice: the nodes that lag are called
// last.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		heads []uint64
		want  string
	}{
		{[]uint64{1000, 1060}, "[http://1.example http://0.example]"},
		{[]uint64{1000, 1000, 1060}, "[http://0.example http://1.example http://2.example]"},
		{[]uint64{1000, 1060, 1060}, "[http://1.example http://2.example http://0.example]"},
		{[]uint64{1000, 1000, 1000, 1060}, "[http://0.example http://1.example http://2.example http://3.example]"},
		{[]uint64{1000, 1000, 1060, 1060}, "[http://2.example http://3.example http://0.example http://1.example]"},
		{[]uint64{1000, 0, 1060}, "[http://1.example http://2.example http://0.example]"}, // two nodes with a head
	} {
		conf := PoolConfig{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
		for i := range c.heads {
			e, err := NewClient(ClientConfig{URL: fmt.Sprintf("http://%d.example", i)})
			expect.OK(t, err)
			t.Cleanup(e.Close)
			conf.Clients = append(conf.Clients, e)
		}
		pool := NewPool(conf)
		for i := range 2 * len(c.heads) {
			if node, head := pool.Nodes()[i%len(c.heads)], c.heads[i%len(c.heads)]; head > 0 {
				node.onRequest(ClassFollowing, 1, 0, nil)
				expect.OK(t, node.ReportHead(Header{Header: invoice.Header{Number: head, Time: invoice.Unix(int64(12 * head))}}))
			}
		}
		expect.Equal(t, fmt.Sprint(pool.Usable()), c.want, "usable with heads %d:", c.heads)
	}
}

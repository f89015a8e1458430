package server

import (
	"testing"

	"github.com/quittance/quittance/internal/web/webpage"
)

// The public door has the connections for all streams of open pages once the process may open
// enough files, whether or not it shares its address.
func TestDoorConnections(t *testing.T) {
	for _, c := range []struct{ accepted, public, api, operator int }{
		{64, 32, 24, 8},
		{468, 235, 175, 58},
		{16_384, 8192, 6144, 2048},
		{24_576, 16_384, 6144, 2048},
	} {
		got := doorConnections(c.accepted)
		if got[webpage.PublicDoor] != c.public || got[webpage.APIDoor] != c.api || got[webpage.OperatorDoor] != c.operator {
			t.Errorf("%d are divided as %v, want %+v", c.accepted, got, c)
		}
	}
}

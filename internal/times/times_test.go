package times_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/times"
)

func TestEarlierAndLater(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, pair := range [][2]time.Time{{early, late}, {late, early}} {
		if got := times.Earlier(pair[0], pair[1]); got != early {
			t.Errorf("the earlier of %v is %v", pair, got)
		}
		if got := times.Later(pair[0], pair[1]); got != late {
			t.Errorf("the later of %v is %v", pair, got)
		}
	}
}

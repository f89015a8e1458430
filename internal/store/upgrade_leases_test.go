package store_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/delivery"
)

// TestUpgradeKeepsLeases checks that a lease in the former table stays valid until its
// end, and that its holder can finish the delivery.
func TestUpgradeKeepsLeases(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		statements := append(firstSchema[:len(firstSchema):len(firstSchema)], firstInvoice(1))
		for n := 1; n <= 3; n++ {
			statements = append(statements,
				fmt.Sprintf("INSERT INTO events VALUES ('evt_%d', %[1]d, 'payment.received', 's%[1]d', 'm', 'inv_1', '{}', 1, 'dlv_%[1]d')", n),
				fmt.Sprintf("INSERT INTO deliveries VALUES (%d, 'm', 0, 0, %d, %d)", n, now-10, now+delivery.RetryWindow.Milliseconds()))
		}
		s := upgrade(t, url, 2, append(statements,
			fmt.Sprintf("INSERT INTO leased VALUES (1, 'm', 'mine', %d)", now+10),
			fmt.Sprintf("INSERT INTO leased VALUES (2, 'm', 'ended', %d)", now-20))...)
		trust(t, s, "m")
		wantIDs(t, "what is not leased", lease(t, s, request("others")), "dlv_2", "dlv_3")
		finish(t, s, success("mine"), delivery.Delivery{Seq: 1, MerchantID: "m"})
		if e := record(t, s, "evt_1"); e.Status != delivery.Delivered {
			t.Errorf("the leased one is %+v", e)
		}
	})
}

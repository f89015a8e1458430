package chain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/rpc"
)

// SubscribeHeads calls wake for every new head that the node announces, until ctx ends or the subscription breaks, and
// returns why it ended. Over HTTP it returns ErrNoSubscription immediately. Announcements may be missed, so poll as
// well.
func (c *Client) SubscribeHeads(ctx context.Context, wake func()) error {
	heads := make(chan json.RawMessage, 16)
	var sub *rpc.ClientSubscription
	err := c.do(ctx, []rpc.BatchElem{{Method: "eth_subscribe"}}, &exchange{}, func(limited context.Context, client *rpc.Client) (err error) {
		if client.SupportsSubscriptions() {
			sub, err = client.EthSubscribe(limited, heads, "newHeads")
		}
		return err
	})
	if err != nil {
		return err
	}
	if sub == nil {
		return ErrNoSubscription
	}
	defer func() { go sub.Unsubscribe() }() // Unsubscribe waits for the node's answer
	c.subscribed.Store(true)
	defer c.subscribed.Store(false)
	for {
		select {
		case <-heads:
			wake()
		case err := <-sub.Err():
			if err == nil {
				err = rpc.ErrClientQuit
			}
			return fmt.Errorf("%s: subscription ended: %w", c.name, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Command ogen creates an invoice with a client that ogen generated, and prints its id. The
// arguments are the service's URL, the merchant's id and address, the network and a key.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quittance/quittance/tools/generators/ogen/client"
)

// key is a key of the API.
type key string

// BearerKey implements client.SecuritySource.
func (k key) BearerKey(context.Context, client.OperationName) (client.BearerKey, error) {
	return client.BearerKey{Token: string(k)}, nil
}

func main() {
	c, err := client.NewClient(os.Args[1], key(os.Args[5]))
	if err != nil {
		log.Fatal(err)
	}
	made, err := c.CreateInvoice(context.Background(), &client.CreateInvoiceRequest{
		MerchantId: client.NewOptMerchantId(client.MerchantId(os.Args[2])), MerchantAddress: client.NewOptAddress(client.Address(os.Args[3])),
		ChainKey: os.Args[4], Currency: "USDC", Amount: "4900000",
		ExpiresAt: client.Time(time.Now().Add(time.Hour).Unix()),
	}, client.CreateInvoiceParams{})
	if err != nil {
		log.Fatal(err)
	}
	answer, ok := made.(*client.CreateInvoiceResponseHeaders)
	if !ok {
		log.Fatalf("%T %+v", made, made)
	}
	fmt.Println(answer.Response.Invoice.ID)
}

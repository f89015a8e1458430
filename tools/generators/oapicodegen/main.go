// Command oapicodegen creates an invoice with a client that oapi-codegen generated, and prints its
// id. The arguments are the service's URL, the merchant's id and address, the network and a key.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/quittance/quittance/tools/generators/oapicodegen/client"
)

func main() {
	key := client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Args[5])
		return nil
	})
	c, err := client.NewClientWithResponses(os.Args[1], key)
	if err != nil {
		log.Fatal(err)
	}
	made, err := c.CreateInvoiceWithResponse(context.Background(), &client.CreateInvoiceParams{}, client.CreateInvoiceRequest{
		MerchantId: os.Args[2], MerchantAddress: os.Args[3], ChainKey: os.Args[4], Currency: "USDC", Amount: "4900000", ExpiresAt: time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		log.Fatal(err)
	}
	if made.JSON201 == nil {
		log.Fatalf("%s: %s", made.Status(), made.Body)
	}
	fmt.Println(made.JSON201.Invoice.Id)
}

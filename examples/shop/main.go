// Command shop is a shop that sells coffee for USDC. It needs the environment variables
// QUITTANCE_URL, QUITTANCE_API_KEY and WEBHOOK_SECRET; CHAIN_KEY and ADDR are optional.
package main

import (
	"cmp"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/quittance/quittance/client"
)

// headerTimeout bounds the time in which a client sends the headers of a request.
const headerTimeout = 5 * time.Second

func main() {
	quittance, err := client.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr: cmp.Or(os.Getenv("ADDR"), "127.0.0.1:9000"), ReadHeaderTimeout: headerTimeout,
		Handler: newShop(quittance, os.Getenv("WEBHOOK_SECRET"), cmp.Or(os.Getenv("CHAIN_KEY"), "local")),
	}
	log.Print("open for business")
	log.Fatal(server.ListenAndServe())
}

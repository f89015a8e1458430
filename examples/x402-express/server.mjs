// A server that sells a forecast for 0.01 USDC to programs, with Quittance as its facilitator.
import { createHmac } from "node:crypto";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";

const { QUITTANCE_URL, QUITTANCE_API_KEY, NETWORK, ASSET, PAY_TO, PORT = "4021" } = process.env;

const headers = { Authorization: `Bearer ${QUITTANCE_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: `${QUITTANCE_URL}/x402`,
  createAuthHeaders: async () => ({ supported: headers, verify: headers, settle: headers }),
});

// secretOf makes a payment valid for one path: a client returns it with the payment. Without it the facilitator answers
// success once, because the resource that a payment names is the client's word. It is the same for all clients: somebody
// who copies a payment can fetch the path again, up to three times in all. Leave it out for what must not be read twice.
const secretOf = path => createHmac("sha256", QUITTANCE_API_KEY).update(path).digest("base64url");

const app = express();
app.use(paymentMiddleware({
  "GET /forecast/:city": {
    accepts: {
      scheme: "exact",
      network: NETWORK,
      payTo: PAY_TO,
      price: ({ path }) => ({ asset: ASSET, amount: "10000", extra: { name: "USD Coin", version: "2", clientSecret: secretOf(path) } }),
    },
    description: "The weather of tomorrow",
    mimeType: "application/json",
  },
}, new x402ResourceServer(facilitator).register(NETWORK, new ExactEvmScheme())));

app.get("/forecast/:city", (request, response) => {
  response.json({ city: request.params.city, weather: "rain" });
});

app.listen(Number(PORT), "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));

// Creates an invoice with openapi-fetch and the types that openapi-typescript generated, and prints
// its id. The arguments are the service's URL, the merchant's id and address, the network and a key.
import createClient from "openapi-fetch";

import type { paths } from "./openapi.js";

async function main([baseUrl, merchantId, merchantAddress, chainKey, key]: string[]): Promise<void> {
  const { data, error } = await createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } }).POST("/api/invoices", {
    body: { merchantId, merchantAddress, chainKey: chainKey!, currency: "USDC", amount: "4900000", expiresAt: Math.floor(Date.now() / 1000) + 3600 },
  });
  if (data === undefined) {
    throw new Error(`${error.code}: ${error.detail}`);
  }
  console.log(data.invoice.id);
}

void main(process.argv.slice(2));

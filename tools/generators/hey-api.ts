// Creates an invoice with a client that @hey-api/openapi-ts generated, and prints its id. The
// arguments are the service's URL, the merchant's id and address, the network and a key.
import { createInvoice } from "./hey-api/index.js";
import { client } from "./hey-api/client.gen.js";

async function main([baseUrl, merchantId, merchantAddress, chainKey, key]: string[]): Promise<void> {
  client.setConfig({ baseUrl, auth: key });
  const { data, error } = await createInvoice({
    body: { merchantId, merchantAddress, chainKey: chainKey!, currency: "USDC", amount: "4900000", expiresAt: Math.floor(Date.now() / 1000) + 3600 },
  });
  if (data === undefined) {
    throw new Error(`${error.code}: ${error.detail}`);
  }
  console.log(data.invoice.id);
}

void main(process.argv.slice(2));

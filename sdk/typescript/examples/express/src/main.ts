import { Quittance } from "@quittance/client";
import { shop } from "./shop.js";

const { QUITTANCE_URL, QUITTANCE_API_KEY, WEBHOOK_SECRET, CHAIN_KEY = "local", PORT = "9000" } = process.env;
if (!QUITTANCE_URL || !QUITTANCE_API_KEY || !WEBHOOK_SECRET) {
  throw new Error("set QUITTANCE_URL, QUITTANCE_API_KEY and WEBHOOK_SECRET");
}
shop(new Quittance({ url: QUITTANCE_URL, key: QUITTANCE_API_KEY }), WEBHOOK_SECRET, CHAIN_KEY).listen(Number(PORT), "127.0.0.1", () =>
  console.log(`open for business at http://127.0.0.1:${PORT}`),
);

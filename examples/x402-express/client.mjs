// A program that pays for its requests: node client.mjs URL
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_KEY);
const pay = wrapFetchWithPayment(fetch, new x402Client().register("eip155:*", new ExactEvmScheme(payer)));

const response = await pay(process.argv[2]);
console.log(response.status, await response.text());
const settled = response.headers.get("PAYMENT-RESPONSE");
if (settled) console.log("settled", JSON.stringify(decodePaymentResponseHeader(settled)));

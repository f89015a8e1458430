// The invoice's on-chain id, computed from its terms as the registry does.

import { encodeAbiParameters, keccak256, stringToHex } from "viem";

import type { Hex } from "./providers";
import type { Invoice } from "./service";

const zero: Hex = "0x0000000000000000000000000000000000000000";

// terms returns the terms as the registry's functions take them.
export const terms = (of: Invoice) => ({
  merchant: of.merchantAddress, token: of.token, amount: BigInt(of.amount), expiresAt: BigInt(of.expiresAt),
  salt: keccak256(stringToHex(of.invoiceId)),
});

// commitment returns the on-chain id of an invoice.
export function commitment(of: Invoice): Hex {
  const t = terms(of);
  return keccak256(encodeAbiParameters(
    [{ type: "uint256" }, { type: "address" }, { type: "address" }, { type: "address" }, { type: "uint256" }, { type: "uint256" }, { type: "bytes32" }],
    [BigInt(of.chainId), of.registry ?? zero, t.merchant, t.token, t.amount, t.expiresAt, t.salt],
  ));
}

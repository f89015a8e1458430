// Data that payers sign: transfers (EIP-3009) and allowances (EIP-2612) of the token.

import { domainSeparator } from "viem";

import { token } from "./abi";
import type { Hex, Provider } from "./providers";
import { call, send } from "./rpc";

// Domain is the EIP-712 domain of a token.
export interface Domain {
  name: string;
  version: string;
  chainId: number;
  verifyingContract: Hex;
}

// domainOf reads the domain of a token, or returns undefined if the token signs under
// another one.
export async function domainOf(provider: Provider, chainId: number, verifyingContract: Hex): Promise<Domain | undefined> {
  try {
    const [name, version, separator] = await Promise.all([
      call<string>(provider, verifyingContract, token, "name"),
      call<string>(provider, verifyingContract, token, "version"),
      call<Hex>(provider, verifyingContract, token, "DOMAIN_SEPARATOR"),
    ]);
    const domain = { name, version, chainId, verifyingContract };
    return domainSeparator({ domain }) === separator ? domain : undefined;
  } catch {
    return undefined;
  }
}

const fields = (list: string) => list.split(", ").map((field) => {
  const [type, name] = field.split(" ");
  return { name, type };
});

const types = {
  EIP712Domain: fields("string name, string version, uint256 chainId, address verifyingContract"),
  TransferWithAuthorization: fields("address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce"),
  Permit: fields("address owner, address spender, uint256 value, uint256 nonce, uint256 deadline"),
};

// sign asks the account to sign a message under the token's domain. The signature may be of any
// length, because contract accounts choose their own format.
export function sign(
  provider: Provider, from: Hex, domain: Domain, primaryType: "TransferWithAuthorization" | "Permit", message: Record<string, string | number>,
): Promise<Hex> {
  const typed = { types: { EIP712Domain: types.EIP712Domain, [primaryType]: types[primaryType] }, primaryType, domain, message };
  return send<Hex>(provider, "eth_signTypedData_v4", [from, JSON.stringify(typed)]);
}

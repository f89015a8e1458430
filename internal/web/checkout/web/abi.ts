// The calls of the token and of the registry.

import { parseAbi } from "viem";

export const token = parseAbi([
  "function balanceOf(address account) view returns (uint256)",
  "function allowance(address owner, address spender) view returns (uint256)",
  "function nonces(address owner) view returns (uint256)",
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function transfer(address to, uint256 value) returns (bool)",
  "function approve(address spender, uint256 value) returns (bool)",
]);

export const registry = parseAbi([
  "struct Terms { address merchant; address token; uint256 amount; uint64 expiresAt; bytes32 salt; }",
  "function statusOf(bytes32 id) view returns (uint8)",
  "function idOf(Terms t) view returns (bytes32)",
  "function pay(Terms t)",
  "function payWithPermit(Terms t, uint256 deadline, uint8 v, bytes32 r, bytes32 s)",
]);

// transferTopic is the first topic of ERC-20's Transfer.
export const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

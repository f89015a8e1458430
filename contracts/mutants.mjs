// Makes mutants of the contracts, one per line, and runs Foundry's tests on each of them. It prints the survivors, and
// fails unless they are exactly the mutants that are shown to be equivalent. Call it in this folder, after `npm ci`
// here and in forge.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const forge = resolve(root, "forge/node_modules/.bin/forge");

// The file in test/foundry that tests each contract.
const tests = { InvoiceRegistry: "Registry", Deposit: "Deposits", DepositFactory: "Deposits", AuthorizationRelay: "Relay", AuthorizationCheck: "Relay" };

// Each entry is [contract, text, its replacement, why it is equivalent]. The text occurs once.
const mutants = [
  ["InvoiceRegistry", "block.timestamp > expiresAt;", "block.timestamp >= expiresAt;"],
  ["InvoiceRegistry", "if (!expired) {", "if (expired) {"],
  ["InvoiceRegistry", "if (statusOf[id] != Status.None) continue;", ""],
  ["InvoiceRegistry", "statusOf[id] = Status.Closed;", ""],
  ["InvoiceRegistry", "if (t.amount == 0) revert ZeroAmount();", ""],
  ["InvoiceRegistry", "if (status == Status.Paid) revert AlreadyPaid(id);", ""],
  ["InvoiceRegistry", "if (status == Status.Closed) revert InvoiceClosed(id);", ""],
  ["InvoiceRegistry", "if (block.timestamp > t.expiresAt)", "if (block.timestamp >= t.expiresAt)"],
  ["InvoiceRegistry", "statusOf[id] = Status.Paid;", ""],
  ["InvoiceRegistry", "balanceAfter - balanceBefore != t.amount", "balanceAfter - balanceBefore < t.amount"], // more than due
  ["InvoiceRegistry", "balanceAfter < balanceBefore || ", ""], // the named error of a falling balance
  ["InvoiceRegistry", "uint256(t.expiresAt), t.salt", "uint256(t.expiresAt), bytes32(0)"],
  ["Deposit", "if (arguments.length != 20) revert NotADeposit();", ""],
  ["Deposit", "if (balance == 0) return 0;", ""],
  ["Deposit", "if (rest >= balance) revert NotTransferred(token);", ""],
  ["Deposit", "return balance - rest;", "return balance;"], // the amount in Swept after a partial transfer
  ["Deposit", "if (part > rest) part = rest;", "if (part >= rest) part = rest;", "where they are equal, the assignment changes nothing"],
  ["Deposit", "if (left >= rest) return left;", "if (left > rest) return left;"],
  ["Deposit", "if (gasleft() < GAS_PER_PART) return rest;", ""],
  ["Deposit", "part = (part + 3) / 4;", "part = part / 4;"],
  ["DepositFactory", "kept -= GAS_PER_SWEEP;", ""],
  ["DepositFactory", "Math.min(gasleft() - kept, MAX_GAS_PER_SWEEP)", "gasleft() - kept"], // the gas cap per sweep
  ["DepositFactory", "if (gasleft() < kept + GAS_BESIDES)", "if (gasleft() < kept)"],
  ["DepositFactory", "if (deposit.code.length == 0) {", "if (deposit.code.length != 0) {"],
  ["DepositFactory", "if (amount > 0) emit Swept", "emit Swept"],
  ["AuthorizationRelay", "this.relayOne{gas: limits[i]}(a)", "this.relayOne(a)"], // burners before an honest item
  ["AuthorizationRelay", "if (gasleft() < needed) revert NotEnoughGas(needed);", ""],
  ["AuthorizationRelay", " && a.from.code.length == 0) {", ") {"],
  ["AuthorizationRelay", "if gt(size, MAX_REASON) { size := MAX_REASON }", "if iszero(lt(size, MAX_REASON)) { size := MAX_REASON }", "where they are equal, the assignment changes nothing"],
  ["AuthorizationCheck", "== had + a.value;", ">= had + a.value;"], // a transfer that moves too much
  ["AuthorizationCheck", "== had + a.value;", "<= had + a.value;"], // a transfer that moves no tokens
  ["AuthorizationCheck", " && a.from != address(0);", ";"], // ecrecover's zero address
];

// survives runs the tests with one source changed.
function survives([contract, text, replacement]) {
  const folder = mkdtempSync(join(tmpdir(), "mutant-"));
  try {
    for (const name of ["src", "test", "foundry.toml", "forge/solc.mjs", "package.json"]) cpSync(join(root, name), join(folder, name), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const path = join(folder, "src", `${contract}.sol`);
    const source = readFileSync(path, "utf8");
    if (source.split(text).length !== 2) throw new Error(`${contract}.sol has ${JSON.stringify(text)} ${source.split(text).length - 1} times, want once`);
    writeFileSync(path, source.replace(text, () => replacement));
    const env = { ...process.env, FOUNDRY_SOLC: "forge/solc.mjs", FOUNDRY_OFFLINE: "true", FOUNDRY_FUZZ_RUNS: "64", FOUNDRY_INVARIANT_RUNS: "8" };
    const run = spawnSync(forge, ["test", "--fail-fast", "--match-path", `test/foundry/${tests[contract]}.t.sol`], { cwd: folder, env, encoding: "utf8" });
    const failed = /Failing tests:/.test(run.stdout);
    if (!failed && !/ tests passed, 0 failed/.test(run.stdout)) throw new Error(`${contract}: ${replacement}: no tests ran:\n${run.stdout}${run.stderr}`);
    return !failed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

let wrong = 0;
let survivors = 0;
for (const mutant of mutants) {
  const [contract, text, replacement, equivalent] = mutant;
  const alive = survives(mutant);
  if (alive) survivors++;
  if (alive !== (equivalent !== undefined)) wrong++;
  const verdict = !alive ? "killed" : equivalent ? `survives, equivalent: ${equivalent}` : "SURVIVES";
  console.log(`${contract}: ${text.trim()} -> ${replacement.trim() || "(nothing)"}: ${verdict}`);
}
console.log(`${survivors} of ${mutants.length} mutants survive`);
process.exit(wrong > 0 ? 1 : 0);

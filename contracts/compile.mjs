// Compiles every contract with the pinned solc and writes one artifact per contract: ABI, creation bytecode, and a
// digest of all inputs, with which a Go test detects a stale artifact.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const solc = createRequire(import.meta.url)("solc");
const root = dirname(fileURLToPath(import.meta.url));

const solidity = (folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".sol"))
    .map((name) => `${folder}/${name}`);
const own = ["src", "test/mocks"].flatMap(solidity).sort();
const read = (path) => readFileSync(join(root, path), "utf8");

const digest = createHash("sha256");
for (const path of [...own, "compile.mjs", "package-lock.json"].sort()) {
  digest.update(`${path}\0${Buffer.byteLength(read(path))}\0${read(path)}`);
}
const inputs = digest.digest("hex");

const request = {
  language: "Solidity",
  sources: Object.fromEntries(own.map((path) => [path, { content: read(path) }])),
  settings: {
    evmVersion: "cancun",
    optimizer: { enabled: true, runs: 1000 },
    metadata: { bytecodeHash: "none", appendCBOR: false },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
  },
};
const answer = JSON.parse(
  solc.compile(JSON.stringify(request), {
    import: (path) => ({ contents: read(join("node_modules", path)) }),
  }),
);

// 2394: transient storage is not cleared between calls. OpenZeppelin's guard clears its slot itself.
const findings = (answer.errors ?? []).filter((finding) => finding.errorCode !== "2394");
for (const finding of findings) {
  console.error(finding.formattedMessage);
}
if (findings.length > 0) {
  process.exit(1); // a warning is treated as a defect, because the contracts handle money
}

rmSync(join(root, "artifacts"), { recursive: true, force: true });
mkdirSync(join(root, "artifacts"));
for (const path of own) {
  for (const [contractName, built] of Object.entries(answer.contracts[path])) {
    const bytecode = built.evm.bytecode.object;
    if (bytecode === "") continue; // an interface
    const artifact = { contractName, source: path, compiler: solc.version(), inputs, abi: built.abi, bytecode: `0x${bytecode}` };
    writeFileSync(join(root, "artifacts", `${contractName}.json`), `${JSON.stringify(artifact, null, 2)}\n`);
  }
}

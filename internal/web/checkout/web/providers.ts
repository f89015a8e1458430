// Wallets that the browser has, by EIP-6963 and, as a fall-back, window.ethereum.

// Hex is bytes or a number in hexadecimal digits.
export type Hex = `0x${string}`;

// Provider is a wallet's interface (EIP-1193).
export interface Provider {
  request(call: { method: string; params?: unknown }): Promise<unknown>;
  on?(event: string, listener: (value: unknown) => void): void;
  removeListener?(event: string, listener: (value: unknown) => void): void;
}

// Wallet is a wallet that was found.
export interface Wallet {
  // id is its reverse domain name, or else its name. Unlike the uuid, it stays the same after a reload.
  // A number is appended for a second wallet with the same id.
  id: string;
  name: string; // with a number if another wallet has it, too
  icon: string; // data: URL; empty without one
  provider: Provider;
}

interface Announcement {
  info?: { uuid?: unknown; rdns?: unknown; name?: unknown; icon?: unknown };
  provider?: Provider;
}

declare global {
  interface Window {
    ethereum?: Provider & { providers?: unknown };
  }
}

const maxName = 40;
const maxID = 200;
const maxIcon = 100_000;
const maxWallets = 12;

// wallets are those that were found so far.
export const wallets: Wallet[] = [];

// announcements are the uuids of those that have announced themselves.
const announcements = new Set<string>();

// discover asks for wallets, and calls found after each one that announces itself.
export function discover(found: () => void): void {
  addEventListener("eip6963:announceProvider", (event) => {
    if (announced((event as CustomEvent<Announcement>).detail)) found();
  });
  dispatchEvent(new Event("eip6963:requestProvider"));
  // Wallets announce themselves while they load.
  const injected = () => { if (injectedWallet()) found(); };
  if (document.readyState === "complete") injected();
  else addEventListener("load", injected);
}

// injectedID is the id of a wallet that does not announce itself.
export const injectedID = "injected";

// injectedWallet adds window.ethereum, unless it has announced itself, or forwards to wallets that
// have. It reports whether it did.
function injectedWallet(): boolean {
  const provider = window.ethereum;
  if (typeof provider?.request !== "function" || has(provider) || wallets.length >= maxWallets) return false;
  const { providers } = provider;
  if (Array.isArray(providers) && providers.length > 0 && providers.every((p) => has(p as Provider))) return false;
  wallets.push({ id: injectedID, name: "", icon: "", provider });
  return true;
}

const has = (provider: Provider) => wallets.some((w) => w.provider === provider);

// announced adds the wallet of an announcement, which the uuid identifies, and reports whether it
// did. The announcement is not trusted: its texts are bounded, and the icon is an image in a data: URL.
function announced(detail: Announcement | undefined): boolean {
  const { info, provider } = detail ?? {};
  if (typeof provider?.request !== "function" || typeof info !== "object" || !info) return false;
  const name = text(info.name, maxName), domain = text(info.rdns, maxID);
  const uuid = text(info.uuid, maxID) || `${domain} ${name}`;
  if (announcements.has(uuid)) return false;
  const injected = wallets.findIndex((w) => w.id === injectedID && w.provider === provider);
  if (injected >= 0) wallets.splice(injected, 1); // it has announced itself late
  if (wallets.length >= maxWallets || has(provider)) return false;
  announcements.add(uuid);
  const icon = typeof info.icon === "string" && info.icon.startsWith("data:image/") && info.icon.length <= maxIcon ? info.icon : "";
  const id = unlike(domain || name || "unnamed", wallets.map((w) => w.id));
  wallets.push({ id, name: name && unlike(name, wallets.map((w) => w.name)), icon, provider });
  return true;
}

// text returns the beginning of a text, without characters that turn its direction.
function text(value: unknown, most: number): string {
  return typeof value === "string" ? value.replace(/[\p{Cc}\p{Cf}]/gu, "").slice(0, most).trim() : "";
}

// unlike returns a text with the first appended number that makes it unique.
function unlike(wanted: string, others: string[]): string {
  let all = wanted;
  for (let n = 2; others.includes(all); n++) all = `${wanted} (${n})`;
  return all;
}

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
  id: string; // reverse domain name, which stays the same after a reload
  name: string;
  icon: string; // data: URL; empty without one
  provider: Provider;
}

interface Announcement {
  info?: { rdns?: unknown; name?: unknown; icon?: unknown };
  provider?: Provider;
}

declare global {
  interface Window {
    ethereum?: Provider;
  }
}

const maxName = 40;
const maxIcon = 100_000;
const maxWallets = 12;

// wallets are those that were found so far.
export const wallets: Wallet[] = [];

// discover asks for wallets, and calls found after each one that announces itself.
export function discover(found: () => void): void {
  addEventListener("eip6963:announceProvider", (event) => {
    const wallet = announced((event as CustomEvent<Announcement>).detail);
    if (!wallet || wallets.length >= maxWallets || wallets.some((w) => w.provider === wallet.provider || w.id === wallet.id)) return;
    const injected = wallets.findIndex((w) => w.id === injectedID);
    if (injected >= 0) wallets.splice(injected, 1); // it is one of those that announce themselves
    wallets.push(wallet);
    found();
  });
  dispatchEvent(new Event("eip6963:requestProvider"));
  const injected = () => {
    if (wallets.length > 0 || typeof window.ethereum?.request !== "function") return;
    wallets.push({ id: injectedID, name: "", icon: "", provider: window.ethereum });
    found();
  };
  // Wallets announce themselves while they load.
  if (document.readyState === "complete") injected();
  else addEventListener("load", injected);
}

// injectedID is the id of a wallet that does not announce itself.
export const injectedID = "injected";

// announced returns the wallet of an announcement. What it says is not trusted: the name
// and the icon are bounded, and the icon is an image in a data: URL.
function announced(detail: Announcement | undefined): Wallet | undefined {
  const { info, provider } = detail ?? {};
  if (typeof provider?.request !== "function" || typeof info?.rdns !== "string" || typeof info.name !== "string") return undefined;
  const icon = typeof info.icon === "string" && info.icon.startsWith("data:image/") && info.icon.length <= maxIcon ? info.icon : "";
  const name = info.name.replace(/[\p{Cc}\p{Cf}]/gu, "").slice(0, maxName).trim(); // no text turns its direction
  return { id: info.rdns, name, icon, provider };
}

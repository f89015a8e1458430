// Optional proof: the page computes the invoice's id from its terms, and asks the registry about it
// through the payer's own wallet.

import { registry } from "./abi";
import { commitment, terms } from "./commitment";
import { explain, network } from "./connect";
import { code, fact, h, paragraph } from "./dom";
import type { Hex, Wallet } from "./providers";
import { call } from "./rpc";
import { invoice as fetchInvoice, type Invoice } from "./service";
import { t } from "./texts";

const statuses = ["proof.none", "proof.paid", "proof.closed"];

// prove draws the comparison into the place.
export async function prove(place: HTMLElement, id: string, wallet: Wallet | undefined): Promise<void> {
  place.replaceChildren(paragraph(t("busy")));
  const values = { Wallet: wallet?.name || t("wallet.unnamed"), Network: "", ChainID: "" };
  try {
    const invoice = await fetchInvoice(id);
    Object.assign(values, { Network: invoice.network, ChainID: String(invoice.chainId) });
    const computed = commitment(invoice);
    place.replaceChildren(...words(invoice, computed));
    if (!wallet || !invoice.registry) return;
    await network(wallet.provider, invoice, () => undefined);
    const [there, status] = await Promise.all([
      call<Hex>(wallet.provider, invoice.registry, registry, "idOf", [terms(invoice)]),
      call<number>(wallet.provider, invoice.registry, registry, "statusOf", [computed]),
    ]);
    place.append(
      verdict(there === computed),
      paragraph(t(statuses[status] ?? "proof.none")),
      h("dl", {}, fact(t("proof.registry"), code(invoice.registry)), fact(t("proof.registry.id"), code(there))),
    );
  } catch (error) {
    place.append(h("p", { class: "problem", role: "alert" }, explain(error, values)));
  }
}

function words(invoice: Invoice, computed: Hex): Node[] {
  return [
    verdict(computed === invoice.onChainInvoiceId),
    h("dl", {}, fact(t("proof.computed"), code(computed)), fact(t("proof.stated"), code(invoice.onChainInvoiceId))),
  ];
}

const verdict = (same: boolean) => h("p", { class: same ? "proved" : "problem", role: "status" }, t(same ? "proof.same" : "proof.differs"));

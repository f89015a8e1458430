// The code that the reference of the REST interface shows: functions with the names of operations.
import type { Quittance } from "@quittance/client";

export async function createInvoice(quittance: Quittance) {
  const created = await quittance.createInvoice({
    amount: "4900000", currency: "USDC", chainKey: "base", expiresAt: Math.floor(Date.now() / 1000) + 3600, reference: "order-1001",
  });
  console.log("pay at", created.checkoutPage);
}

export async function getInvoice(quittance: Quittance) {
  const invoice = await quittance.getInvoice("inv_06h09bzqhdtmdc03cxwgxg98ar");
  console.log(invoice.status, invoice.amountPaid);
}

export async function listInvoices(quittance: Quittance) {
  for await (const invoice of quittance.listInvoices({ status: "paid" })) {
    console.log(invoice.id, invoice.amount);
  }
}

export async function voidInvoice(quittance: Quittance) {
  const invoice = await quittance.voidInvoice("inv_06h09bzqhdtmdc03cxwgxg98ar");
  console.log(invoice.status);
}

export async function listPayments(quittance: Quittance) {
  for await (const payment of quittance.listPayments({ chainKey: "base", include: ["pending"] })) {
    console.log(payment.id, payment.invoiceId, payment.amount);
  }
}

export async function attributePayment(quittance: Quittance) {
  const payment = await quittance.attributePayment("pay_4f1dj9ggghknk478whdraf4k5r", {
    invoiceId: "inv_06h09bzqhdtmdc03cxwgxg98ar", by: "Maria", note: "the payer sent the receipt",
  });
  console.log(payment.invoiceId);
}

export async function prepareRefund(quittance: Quittance) {
  const prepared = await quittance.prepareRefund("pay_4f1dj9ggghknk478whdraf4k5r", { amount: "1500000", reason: "returned" });
  console.log(prepared.refund.id, prepared.refund.status);
}

export async function createPaymentLink(quittance: Quittance) {
  const link = await quittance.createPaymentLink({ title: "Coffee", amount: "4900000", currency: "USDC", chainKey: "base", expiresIn: 3600 });
  console.log(link.id, link.slug);
}

export async function streamEvents(quittance: Quittance) {
  for await (const event of quittance.streamEvents({ type: "invoice.paid" })) {
    console.log(event.event.type, event.position);
  }
}

export async function redeliverEvent(quittance: Quittance) {
  const record = await quittance.redeliverEvent("evt_06gznj01jxvrf4qmr9qzk1g6wm");
  console.log(record.delivery?.status);
}

export async function putWebhook(quittance: Quittance) {
  const { secret } = await quittance.putWebhook("acme", { url: "https://shop.example/webhooks" });
  console.log(secret); // it is shown once
}

export async function createMerchant(quittance: Quittance) {
  const merchant = await quittance.createMerchant({
    id: "acme", name: "Acme", defaultAddresses: { base: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" },
  });
  console.log(merchant.id);
}

export async function createKey(quittance: Quittance) {
  const { secret } = await quittance.createKey({ name: "shop backend", merchantId: "acme", scopes: ["standard"] });
  console.log(secret); // it is shown once
}

export async function getSettlementReport(quittance: Quittance) {
  const report = await quittance.getSettlementReport({ from: "2026-11-01", to: "2026-12-01", timezone: "Europe/Berlin" });
  console.log(report.lines.length);
}

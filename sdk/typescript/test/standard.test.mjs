// Verifies deliveries, signed by Quittance, with the public verifiers of Standard Webhooks and of Stripe. An
// environment variable has the name of the file with the deliveries.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

const file = process.env.SIGNED_DELIVERIES;
assert.ok(file, "SIGNED_DELIVERIES names no file");
const deliveries = JSON.parse(readFileSync(file, "utf8"));
assert.ok(deliveries.length > 0);

for (const d of deliveries) {
  test(d.name, () => {
    const verifier = d.raw ? new Webhook(d.secret, { format: "raw" }) : new Webhook(d.secret);
    if (d.valid) {
      verifier.verify(d.body, d.headers);
    } else {
      assert.throws(() => verifier.verify(d.body, d.headers), { name: "WebhookVerificationError" });
    }
  });
}

for (const d of deliveries) {
  test(`Stripe: ${d.name}`, () => {
    const construct = () => Stripe.webhooks.constructEvent(d.body, d.headers["X-Service-Signature"], d.secret);
    if (d.validForStripe) {
      assert.equal(construct().type, "invoice.paid");
    } else {
      assert.throws(construct, { type: "StripeSignatureVerificationError" });
    }
  });
}

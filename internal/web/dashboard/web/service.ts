// A refund as the service reports it, and the requests that the page sends to the service.

import type { Hex } from "../../checkout/web/providers";
import { Unreachable, type Network } from "../../checkout/web/service";

// Refund is the answer of /dashboard/refunds/{id}/wallet. Amounts are in minor units.
export interface Refund extends Network {
  from: Hex;
  amount: string;
  currency: string;
  decimals: number;
  token?: Hex; // contract to call; absent if the refund cannot be sent
  data?: Hex; // calldata, with token
  state: string; // changes whenever the page's content does
  submission?: Submission; // the one in force
}

// Submission records who sends the refund.
export interface Submission {
  id: string;
  by: string;
  txHash?: Hex;
}

// Refused is thrown with the service's explanation of why it refused a request.
export class Refused extends Error {
  constructor(detail: string, readonly status: number) {
    super(detail);
  }
}

const patience = 20_000; // milliseconds

// ask sends a request, and returns the JSON of the answer.
async function ask<T>(path: string, form?: Record<string, string>): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      cache: "no-store", signal: AbortSignal.timeout(patience), headers: { Accept: "application/json" },
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
  } catch (error) {
    throw new Unreachable(String(error));
  }
  if (answer.status === 400 || answer.status === 403 || answer.status === 409 || answer.status === 503) {
    const problem = await answer.json().catch(() => ({})) as { detail?: string };
    if (problem.detail) throw new Refused(problem.detail, answer.status);
  }
  if (!answer.ok) throw new Unreachable(`status ${answer.status}`);
  return await answer.json() as T;
}

// Service is the service's part of the page's refund.
export class Service {
  constructor(private readonly wallet: string, private readonly submissions: string) {}

  // refund reads the current state of the refund.
  refund(): Promise<Refund> {
    return ask(this.wallet);
  }

  // submit records that this wallet is asked to send the refund. It throws Refused if another person
  // already sends it.
  async submit(): Promise<Submission> {
    return (await ask<{ submission: Submission }>(this.submissions, {})).submission;
  }

  // record records what the wallet has sent.
  async record(submission: string, txHash: Hex): Promise<void> {
    await ask(this.of(submission, "transaction"), { txHash });
  }

  // withdraw records that no transaction was sent, because the wallet's answer proves it.
  async withdraw(submission: string): Promise<void> {
    await ask(this.of(submission, "withdraw"), { checkedInWallet: "true" });
  }

  // of returns the address of an action on a submission. The query names the merchant.
  private of(submission: string, act: string): string {
    const [path, query] = this.submissions.split("?");
    return `${path}/${submission}/${act}${query ? `?${query}` : ""}`;
  }
}

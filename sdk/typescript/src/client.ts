import createClient, { type Client } from "openapi-fetch";
import type {
  ApproveRefundRequest,
  Attempt,
  AttributePaymentRequest,
  AuditEntry,
  Claim,
  CreateInvoiceRequest,
  CreateInvoiceResponse,
  CreateKeyRequest,
  CreateMerchantRequest,
  Invoice,
  InvoiceStatus,
  Key,
  KeySecretResponse,
  Merchant,
  Payment,
  PrepareRefundRequest,
  PutWebhookRequest,
  RedeliverEventsRequest,
  RefundRecord,
  RefundResponse,
  RefundStatus,
  SettlementReport,
  TimelineEntry,
  UpdateInvoiceRequest,
  UpdateMerchantRequest,
  Webhook,
  WebhookSecretResponse,
  paths,
} from "./openapi.js";
import { pages } from "./pages.js";
import { retrying, type RetryOptions } from "./retry.js";
import { stream, type StreamedEvent } from "./stream.js";
import type { CallOptions, CreateOptions, EventRecord, Filter } from "./types.js";

/** What a client is given. */
export interface QuittanceOptions extends RetryOptions {
  /** Where the service is, such as https://pay.example.com. */
  url: string;
  /** A key of the operator or of one merchant. */
  key?: string;
  /** Makes idempotency keys; crypto.randomUUID if left out. */
  randomUUID?: () => string;
}

/**
 * A client of one service. An error response is thrown as a QuittanceError. Attempts that fail for reasons that may pass
 * are repeated, unless the repetition could do something twice.
 */
export class Quittance {
  /** The client of openapi-fetch that all methods use, with retries and errors as theirs. */
  readonly http: Client<paths, "application/json">;
  readonly #url: string;
  readonly #fetch: (request: Request) => Promise<Response>; // repeats every request
  readonly #patientFetch: (request: Request) => Promise<Response>; // for what takes up to a minute
  readonly #headers: Record<string, string>;
  readonly #options: RetryOptions;
  readonly #uuid: () => string;

  constructor(options: QuittanceOptions) {
    const url = new URL(options.url);
    if (!/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
      throw new TypeError(`the url ${options.url} must be of the form https://host or https://host/path`);
    }
    this.#url = url.href.replace(/\/+$/, "");
    this.#fetch = retrying(options, true);
    this.#patientFetch = retrying(options, true, 60_000);
    this.#headers = options.key ? { Authorization: `Bearer ${options.key}` } : {};
    this.#options = options;
    this.#uuid = options.randomUUID ?? (() => crypto.randomUUID());
    this.http = createClient<paths, "application/json">({
      baseUrl: this.#url,
      fetch: retrying(options),
      headers: { Accept: "application/json, application/problem+json", ...this.#headers },
      querySerializer: { array: { style: "form", explode: false } },
    });
  }

  /** Creates an open invoice, or a draft. Send the customer to checkoutPage. */
  async createInvoice(body: CreateInvoiceRequest, options: CreateOptions = {}): Promise<CreateInvoiceResponse & { checkoutPage: string }> {
    const header = { "Idempotency-Key": options.idempotencyKey ?? this.#uuid() };
    const { data } = await this.http.POST("/api/invoices", { body, params: { header }, ...given(options) });
    // The service leaves the page out if it is not configured with its public URL.
    return { checkoutPage: this.#url + data!.checkoutUrl, ...data! };
  }

  /** Fetches an invoice. */
  async getInvoice(id: string, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.GET("/api/invoices/{id}", { params: { path: { id } }, ...given(options) });
    return data!.invoice;
  }

  /** Changes an invoice. What is absent stays as it is; null removes a member. */
  async updateInvoice(id: string, body: UpdateInvoiceRequest, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.PATCH("/api/invoices/{id}", { params: { path: { id } }, body, fetch: this.#fetch, ...given(options) });
    return data!.invoice;
  }

  /** Deletes a draft. */
  async deleteInvoice(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/invoices/{id}", { params: { path: { id } }, ...given(options) });
  }

  /** Issues a draft, which becomes open. */
  async finalizeInvoice(id: string, options: CallOptions = {}): Promise<CreateInvoiceResponse & { checkoutPage: string }> {
    const { data } = await this.http.POST("/api/invoices/{id}/finalize", { params: { path: { id } }, fetch: this.#fetch, ...given(options) });
    return { checkoutPage: this.#url + data!.checkoutUrl, ...data! };
  }

  /** Cancels a draft or an open invoice. */
  async voidInvoice(id: string, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.POST("/api/invoices/{id}/void", { params: { path: { id } }, fetch: this.#fetch, ...given(options) });
    return data!.invoice;
  }

  /** Returns an invoice as soon as its status is not the known one. The service is asked once a minute. */
  async awaitInvoice(id: string, known: InvoiceStatus = "open", options: CallOptions = {}): Promise<Invoice> {
    for (;;) {
      const { data } = await this.http.GET("/api/invoices/{id}", {
        params: { path: { id }, query: { wait: 60, status: known } }, fetch: this.#patientFetch, ...given(options),
      });
      if (data!.invoice.status !== known) {
        return data!.invoice;
      }
    }
  }

  /** Lists invoices, newest first. Pages are requested as needed. */
  listInvoices(filter: Filter<"/api/invoices"> = {}, options: CallOptions = {}): AsyncGenerator<Invoice, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/invoices", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.invoices,
    );
  }

  /** Lists the payments of an invoice. Pages are requested as needed. */
  listInvoicePayments(id: string, options: CallOptions = {}): AsyncGenerator<Payment, void> {
    return pages(
      async (query) => (await this.http.GET("/api/invoices/{id}/payments", { params: { path: { id }, query }, ...given(options) })).data!,
      (page) => page.payments,
    );
  }

  /** Lists what happened to an invoice, in order. Pages are requested as needed. */
  listInvoiceTimeline(id: string, options: CallOptions = {}): AsyncGenerator<TimelineEntry, void> {
    return pages(
      async (query) => (await this.http.GET("/api/invoices/{id}/timeline", { params: { path: { id }, query }, ...given(options) })).data!,
      (page) => page.entries,
    );
  }

  /** Lists payments, the most recently seen first. Pages are requested as needed. */
  listPayments(filter: Filter<"/api/payments"> = {}, options: CallOptions = {}): AsyncGenerator<Payment, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/payments", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.payments,
    );
  }

  /** Fetches a payment. */
  async getPayment(id: string, options: CallOptions = {}): Promise<Payment> {
    const { data } = await this.http.GET("/api/payments/{id}", { params: { path: { id } }, ...given(options) });
    return data!.payment;
  }

  /** Attributes a payment to an invoice by hand. */
  async attributePayment(id: string, body: AttributePaymentRequest, options: CallOptions = {}): Promise<Payment> {
    const { data } = await this.http.POST("/api/payments/{id}/attribution", {
      params: { path: { id } }, body, fetch: this.#fetch, ...given(options),
    });
    return data!.payment;
  }

  /** Lists payers' claims to unattributed payments, newest first. Pages are requested as needed. */
  listClaims(filter: Filter<"/api/claims"> = {}, options: CallOptions = {}): AsyncGenerator<Claim, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/claims", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.claims,
    );
  }

  /** Reserves a part of a payment, and returns the transaction that sends it back, for the merchant's wallet to sign. */
  async prepareRefund(paymentId: string, body: PrepareRefundRequest = {}, options: CreateOptions = {}): Promise<RefundResponse> {
    const header = { "Idempotency-Key": options.idempotencyKey ?? this.#uuid() };
    const { data } = await this.http.POST("/api/payments/{id}/refunds", { params: { path: { id: paymentId }, header }, body, ...given(options) });
    return this.#refund(data!);
  }

  /** Lists the refunds of a payment, newest first. Pages are requested as needed. */
  listPaymentRefunds(paymentId: string, status?: RefundStatus, options: CallOptions = {}): AsyncGenerator<RefundRecord, void> {
    const params = (cursor: { cursor?: string }) => ({ path: { id: paymentId }, query: { ...(status && { status }), ...cursor } });
    return pages(
      async (cursor) => (await this.http.GET("/api/payments/{id}/refunds", { params: params(cursor), ...given(options) })).data!,
      (page) => page.refunds,
    );
  }

  /** Lists refunds, newest first. Pages are requested as needed. */
  listRefunds(filter: Filter<"/api/refunds"> = {}, options: CallOptions = {}): AsyncGenerator<RefundRecord, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/refunds", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.refunds,
    );
  }

  /** Fetches a refund, with the transaction while it can be sent. */
  async getRefund(id: string, options: CallOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.GET("/api/refunds/{id}", { params: { path: { id } }, ...given(options) });
    return this.#refund(data!);
  }

  /** Cancels a prepared refund whose transaction was not signed. */
  async cancelRefund(id: string, options: CallOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.POST("/api/refunds/{id}/cancel", { params: { path: { id } }, fetch: this.#fetch, ...given(options) });
    return this.#refund(data!);
  }

  /** Approves the address that a payer named without a signature. */
  async approveRefund(id: string, body: ApproveRefundRequest, options: CallOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.POST("/api/refunds/{id}/approve", { params: { path: { id } }, body, fetch: this.#fetch, ...given(options) });
    return this.#refund(data!);
  }

  /** Returns a response with an absolute claimUrl. It is a path if the service is not configured with its public URL. */
  #refund(response: RefundResponse): RefundResponse {
    return response.claimUrl?.startsWith("/") ? { ...response, claimUrl: this.#url + response.claimUrl } : response;
  }

  /** Adds up the payments and refunds that were confirmed in a period. */
  async getSettlementReport(
    query: paths["/api/reports/settlement"]["get"]["parameters"]["query"],
    options: CallOptions = {},
  ): Promise<SettlementReport> {
    const { data } = await this.http.GET("/api/reports/settlement", { params: { query }, fetch: this.#patientFetch, ...given(options) });
    return data!.report;
  }

  /**
   * Yields the events after a position as soon as they are recorded: `start`, `end`, or the position of an event. A broken
   * stream is continued where it broke, so that each event is yielded once.
   */
  streamEvents(filter: Filter<"/api/events/stream"> = {}, after = "end", options: CallOptions = {}): AsyncGenerator<StreamedEvent, void> {
    const request = (position: string) => {
      const query = new URLSearchParams({ ...filter, after: position });
      return new Request(`${this.#url}/api/events/stream?${query}`, { headers: { Accept: "text/event-stream", ...this.#headers } });
    };
    return stream(request, after, this.#options, options.signal ?? new AbortController().signal);
  }

  /** Lists events with the state of their deliveries, newest first. Pages are requested as needed. */
  listEvents(filter: Filter<"/api/events"> = {}, options: CallOptions = {}): AsyncGenerator<EventRecord, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/events", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.events as EventRecord[],
    );
  }

  /**
   * Fetches the events after a position, oldest first: `start`, `end`, or the position that the previous call returned.
   * Each event is returned exactly once; an empty page means that there are no more yet.
   */
  async eventsAfter(after: string, filter: Filter<"/api/events"> = {}, options: CallOptions = {}): Promise<{ events: EventRecord[]; next: string }> {
    const { data } = await this.http.GET("/api/events", { params: { query: { ...filter, after } }, ...given(options) });
    return { events: data!.events as EventRecord[], next: data!.nextCursor ?? after };
  }

  /** Fetches an event, with its delivery and every attempt. */
  async getEvent(id: string, options: CallOptions = {}): Promise<EventRecord> {
    const { data } = await this.http.GET("/api/events/{id}", { params: { path: { id } }, ...given(options) });
    return data as EventRecord;
  }

  /** Sends an event again. */
  async redeliverEvent(id: string, options: CallOptions = {}): Promise<EventRecord> {
    const { data } = await this.http.POST("/api/events/{id}/redeliver", { params: { path: { id } }, ...given(options) });
    return data as EventRecord;
  }

  /** Sends many events again, and returns their number. */
  async redeliverEvents(body: RedeliverEventsRequest, options: CallOptions = {}): Promise<number> {
    let sent = 0;
    for await (const n of pages(
      async (cursor) => (await this.http.POST("/api/events/redeliver", { body: { ...body, ...cursor }, ...given(options) })).data!,
      (page) => [page.redelivered],
    )) {
      sent += n;
    }
    return sent;
  }

  /** Creates a key. The secret is shown only here. */
  async createKey(body: CreateKeyRequest, options: CallOptions = {}): Promise<KeySecretResponse> {
    return (await this.http.POST("/api/keys", { body, ...given(options) })).data!;
  }

  /** Lists keys, newest first. Pages are requested as needed. */
  listKeys(filter: Filter<"/api/keys"> = {}, options: CallOptions = {}): AsyncGenerator<Key, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/keys", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.keys,
    );
  }

  /** Creates a key in the place of another, which stays valid for the overlap. The secret is shown only here. */
  async rotateKey(id: string, overlapSeconds: number, options: CallOptions = {}): Promise<KeySecretResponse> {
    const { data } = await this.http.POST("/api/keys/{id}/rotate", { params: { path: { id } }, body: { overlapSeconds }, ...given(options) });
    return data!;
  }

  /** Revokes a key. */
  async revokeKey(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/keys/{id}", { params: { path: { id } }, fetch: this.#fetch, ...given(options) });
  }

  /** Lists entries of the audit log, newest first. Pages are requested as needed. */
  listAuditEntries(filter: Filter<"/api/audit"> = {}, options: CallOptions = {}): AsyncGenerator<AuditEntry, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/audit", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.entries,
    );
  }

  /** Lists merchants in the order of their ids. Pages are requested as needed. */
  listMerchants(filter: Filter<"/api/merchants"> = {}, options: CallOptions = {}): AsyncGenerator<Merchant, void> {
    return pages(
      async (cursor) => (await this.http.GET("/api/merchants", { params: { query: { ...filter, ...cursor } }, ...given(options) })).data!,
      (page) => page.merchants,
    );
  }

  /** Creates a merchant. */
  async createMerchant(body: CreateMerchantRequest, options: CallOptions = {}): Promise<Merchant> {
    return (await this.http.POST("/api/merchants", { body, ...given(options) })).data!.merchant;
  }

  /** Fetches a merchant. */
  async getMerchant(id: string, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.GET("/api/merchants/{id}", { params: { path: { id } }, ...given(options) });
    return data!.merchant;
  }

  /** Changes a merchant. */
  async updateMerchant(id: string, body: UpdateMerchantRequest, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.PATCH("/api/merchants/{id}", { params: { path: { id } }, body, fetch: this.#fetch, ...given(options) });
    return data!.merchant;
  }

  /** Sets a merchant's logo, a PNG, JPEG or GIF image. */
  async putMerchantLogo(id: string, image: Blob, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.PUT("/api/merchants/{id}/logo", {
      params: { path: { id } }, body: "", bodySerializer: () => image, headers: { "Content-Type": image.type || "application/octet-stream" },
      fetch: this.#fetch, ...given(options),
    });
    return data!.merchant;
  }

  /** Removes a merchant's logo. */
  async deleteMerchantLogo(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/logo", { params: { path: { id } }, fetch: this.#fetch, ...given(options) });
  }

  /** Takes a settlement address back from a merchant. Its invoices that exist keep the address. */
  async releaseMerchantAddress(id: string, address: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/addresses/{address}", { params: { path: { id, address } }, ...given(options) });
  }

  /** Fetches a merchant's webhook endpoint. */
  async getWebhook(merchantId: string, options: CallOptions = {}): Promise<Webhook> {
    const { data } = await this.http.GET("/api/merchants/{id}/webhook", { params: { path: { id: merchantId } }, ...given(options) });
    return data!.webhook;
  }

  /** Sets a merchant's webhook URL. The first call returns the signing secret, which is shown only then. */
  async putWebhook(merchantId: string, body: PutWebhookRequest, options: CallOptions = {}): Promise<{ webhook: Webhook; secret?: string }> {
    const { data } = await this.http.PUT("/api/merchants/{id}/webhook", { params: { path: { id: merchantId } }, body, ...given(options) });
    return data!;
  }

  /** Posts a test event to a merchant's endpoint, and returns the attempt. */
  async pingWebhook(merchantId: string, options: CallOptions = {}): Promise<Attempt> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/ping", { params: { path: { id: merchantId } }, ...given(options) });
    return data!.ping;
  }

  /** Stages the secret that is to replace the active one. It is shown only here. */
  async stageWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<WebhookSecretResponse> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/secret", { params: { path: { id: merchantId } }, ...given(options) });
    return data!;
  }

  /** Makes the staged secret the active one. */
  async promoteWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<Webhook> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/secret/promote", {
      params: { path: { id: merchantId } }, ...given(options),
    });
    return data!.webhook;
  }

  /** Drops the staged secret. */
  async dropWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/webhook/secret", { params: { path: { id: merchantId } }, ...given(options) });
  }
}

/** Returns the options of openapi-fetch for those of a call. */
function given(options: CallOptions): { signal?: AbortSignal } {
  return options.signal ? { signal: options.signal } : {};
}

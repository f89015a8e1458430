import type {
  ApproveRefundRequest,
  AttributePaymentRequest,
  Claim,
  CreateInvoiceRequest,
  CreateInvoiceResponse,
  CustomerRecord,
  DecideRequest,
  Decision,
  EraseCustomerRequest,
  Erasure,
  InboxCount,
  InboxItem,
  Invoice,
  InvoiceReport,
  InvoiceStatus,
  Mail,
  Payment,
  PrepareRefundRequest,
  RecordTransactionRequest,
  RefundRecord,
  RefundResponse,
  RefundStatus,
  SendInvoiceRequest,
  SettlementReport,
  Statement,
  Submission,
  SubmitRefundRequest,
  Summary,
  TimelineEntry,
  UpdateInvoiceRequest,
  paths,
} from "./openapi.js";
import { TimeoutError } from "./callerrors.js";
import { again, patient, report } from "./connection.js";
import { Events } from "./events.js";
import { exported } from "./export.js";
import { pages, type List } from "./pages.js";
import { sleep } from "./retry.js";
import type { CallOptions, CreateOptions, ExportFilter, Filter } from "./types.js";
import { within } from "./watch.js";

/** The pause of awaitInvoice between two requests, if the service or a proxy answers immediately. */
const pauseMs = 1_000;

/**
 * A client of one service. An error response is thrown as a QuittanceError. Attempts that fail for temporary reasons
 * are repeated, unless the repetition could do something twice.
 */
export class Quittance extends Events {
  /** Creates an open invoice, or a draft. Send the customer to checkoutPage. */
  async createInvoice(body: CreateInvoiceRequest, options: CreateOptions = {}): Promise<CreateInvoiceResponse & { checkoutPage: string }> {
    const { data } = await this.http.POST("/api/invoices", { body, ...this.given(options, again) });
    // The service leaves the page out if it is not configured with its public URL.
    return { checkoutPage: this.url + data!.checkoutUrl, ...data! };
  }

  /** Fetches an invoice. */
  async getInvoice(id: string, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.GET("/api/invoices/{id}", { params: { path: { id } }, ...this.given(options) });
    return data!.invoice;
  }

  /** Changes an invoice. Absent members stay as they are; null removes a member. */
  async updateInvoice(id: string, body: UpdateInvoiceRequest, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.PATCH("/api/invoices/{id}", { params: { path: { id } }, body, ...this.given(options, again) });
    return data!.invoice;
  }

  /** Deletes a draft. */
  async deleteInvoice(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/invoices/{id}", { params: { path: { id } }, ...this.given(options) });
  }

  /** Issues a draft, which becomes open. */
  async finalizeInvoice(id: string, options: CallOptions = {}): Promise<CreateInvoiceResponse & { checkoutPage: string }> {
    const { data } = await this.http.POST("/api/invoices/{id}/finalize", { params: { path: { id } }, ...this.given(options, again) });
    return { checkoutPage: this.url + data!.checkoutUrl, ...data! };
  }

  /** Cancels a draft or an open invoice. */
  async voidInvoice(id: string, options: CallOptions = {}): Promise<Invoice> {
    const { data } = await this.http.POST("/api/invoices/{id}/void", { params: { path: { id } }, ...this.given(options, again) });
    return data!.invoice;
  }

  /** Sends an invoice to the customer by e-mail. It is idempotent for an hour. */
  async sendInvoice(id: string, body: SendInvoiceRequest = {}, options: CallOptions = {}): Promise<void> {
    await this.http.POST("/api/invoices/{id}/mails", { params: { path: { id } }, body, ...this.given(options, again) });
  }

  /** Fetches all mails about an invoice. */
  async listInvoiceMails(id: string, options: CallOptions = {}): Promise<Mail[]> {
    return (await this.http.GET("/api/invoices/{id}/mails", { params: { path: { id } }, ...this.given(options) })).data!.mails;
  }

  /** Deletes the reminders of an invoice that are not due yet. */
  async dropReminders(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/invoices/{id}/mails", { params: { path: { id } }, ...this.given(options, again) });
  }

  /** Returns an invoice as soon as its status differs from the known one. The service is asked once a minute. */
  async awaitInvoice(id: string, known: InvoiceStatus = "open", { timeoutMs = Infinity, ...options }: CallOptions = {}): Promise<Invoice> {
    const late = () => new TimeoutError(`the invoice ${id} was ${known} for ${timeoutMs} ms`);
    const settings = this.settings(options);
    return within(options.signal, timeoutMs, late, async (signal) => {
      for (;;) {
        const { data } = await this.http.GET("/api/invoices/{id}", {
          params: { path: { id }, query: { wait: 60, status: known } }, ...this.given({ ...options, signal }, patient),
        });
        if (data!.invoice.status !== known) {
          return data!.invoice;
        }
        await (settings.sleep ?? sleep)(pauseMs, signal);
      }
    });
  }

  /** Lists invoices, newest first. Pages are requested as needed. */
  listInvoices(filter: Filter<"/api/invoices"> = {}, options: CallOptions = {}): List<Invoice> {
    return pages(
      async (cursor) => (await this.http.GET("/api/invoices", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.invoices,
    );
  }

  /** Lists the customers of a merchant's invoices. Pages are requested as needed. */
  listCustomers(filter: Filter<"/api/customers"> = {}, options: CallOptions = {}): List<CustomerRecord> {
    return pages(
      async (cursor) => (await this.http.GET("/api/customers", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.customers,
    );
  }

  /**
   * Removes the personal data of a customer, wherever it is stored. It cannot be undone. While the status is `running`,
   * the same call with the same `idempotencyKey` returns the progress. A call without the option has a new key each
   * time. Each call with a new key is a new request, and also erases the invoices that were created since.
   */
  async eraseCustomer(body: EraseCustomerRequest, options: CreateOptions = {}): Promise<Erasure> {
    return (await this.http.POST("/api/customers/erase", { body, ...this.given(options, again) })).data!.erasure;
  }

  /** Lists the payments of an invoice. Pages are requested as needed. */
  listInvoicePayments(id: string, options: CallOptions = {}): List<Payment> {
    return pages(
      async (query) => (await this.http.GET("/api/invoices/{id}/payments", { params: { path: { id }, query }, ...this.given(options) })).data!,
      (page) => page.payments,
    );
  }

  /**
   * Lists the history of an invoice, in order. Pages are requested as needed. At its end the generator returns whether
   * the timeline is incomplete.
   */
  listInvoiceTimeline(id: string, options: CallOptions = {}): List<TimelineEntry, { truncated: boolean }> {
    let truncated = false;
    return pages(
      async (query) => {
        const page = (await this.http.GET("/api/invoices/{id}/timeline", { params: { path: { id }, query }, ...this.given(options) })).data!;
        truncated = page.truncated ?? false;
        return page;
      },
      (page) => page.entries,
      { end: () => ({ truncated }) },
    );
  }

  /** Lists payments, the most recently seen first. Pages are requested as needed. */
  listPayments(filter: Filter<"/api/payments"> = {}, options: CallOptions = {}): List<Payment> {
    return pages(
      async (cursor) => (await this.http.GET("/api/payments", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.payments,
    );
  }

  /** Fetches a payment. */
  async getPayment(id: string, options: CallOptions = {}): Promise<Payment> {
    const { data } = await this.http.GET("/api/payments/{id}", { params: { path: { id } }, ...this.given(options) });
    return data!.payment;
  }

  /** Attributes a payment to an invoice by hand. */
  async attributePayment(id: string, body: AttributePaymentRequest, options: CallOptions = {}): Promise<Payment> {
    const { data } = await this.http.POST("/api/payments/{id}/attribution", {
      params: { path: { id } }, body, ...this.given(options, again),
    });
    return data!.payment;
  }

  /** Lists payers' claims to unattributed payments, newest first. Pages are requested as needed. */
  listClaims(filter: Filter<"/api/claims"> = {}, options: CallOptions = {}): List<Claim> {
    return pages(
      async (cursor) => (await this.http.GET("/api/claims", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.claims,
    );
  }

  /** Lists items that need a decision, newest first. Pages are requested as needed. */
  listInbox(filter: Filter<"/api/inbox"> = {}, options: CallOptions = {}): List<InboxItem> {
    return pages(
      async (cursor) => (await this.http.GET("/api/inbox", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.items,
    );
  }

  /** Counts items that need a decision. */
  async countInbox(query: { merchantId?: string } = {}, options: CallOptions = {}): Promise<InboxCount[]> {
    const { data } = await this.http.GET("/api/inbox/counts", { params: { query }, ...this.given(options) });
    return data!.counts;
  }

  /** Lists past decisions, newest first. Pages are requested as needed. */
  listDecisions(filter: Filter<"/api/inbox/decisions"> = {}, options: CallOptions = {}): List<Decision> {
    return pages(
      async (cursor) => (await this.http.GET("/api/inbox/decisions", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.decisions,
    );
  }

  /** Records a decision about an item of the inbox. It fails with `already_decided` if somebody decided earlier. */
  async decide(body: DecideRequest, options: CallOptions = {}): Promise<Decision> {
    const { data } = await this.http.POST("/api/inbox/decisions", { body, ...this.given(options) });
    return data!.decision;
  }

  /** Undoes a decision. It fails with `already_attributed` if that attributed a payment and has taken effect. */
  async undoDecision(id: string, options: CallOptions = {}): Promise<Decision> {
    const { data } = await this.http.POST("/api/inbox/decisions/{id}/undo", { params: { path: { id } }, ...this.given(options, again) });
    return data!.decision;
  }

  /** Reserves part of a payment, and returns the transaction that sends it back, for the merchant's wallet to sign. */
  async prepareRefund(paymentId: string, body: PrepareRefundRequest = {}, options: CreateOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.POST("/api/payments/{id}/refunds", { params: { path: { id: paymentId } }, body, ...this.given(options, again) });
    return this.#refund(data!);
  }

  /** Lists the refunds of a payment, newest first. Pages are requested as needed. */
  listPaymentRefunds(paymentId: string, status?: RefundStatus, options: CallOptions = {}): List<RefundRecord> {
    const params = (cursor: { cursor?: string }) => ({ path: { id: paymentId }, query: { ...(status && { status }), ...cursor } });
    return pages(
      async (cursor) => (await this.http.GET("/api/payments/{id}/refunds", { params: params(cursor), ...this.given(options) })).data!,
      (page) => page.refunds,
    );
  }

  /** Lists refunds, newest first. Pages are requested as needed. */
  listRefunds(filter: Filter<"/api/refunds"> = {}, options: CallOptions = {}): List<RefundRecord> {
    return pages(
      async (cursor) => (await this.http.GET("/api/refunds", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.refunds,
    );
  }

  /**
   * Fetches a refund, with the transaction while it can be sent. `include: ["safe"]` also asks nodes what a contract that
   * sends the refund will do with the submission in force.
   */
  async getRefund(id: string, options: CallOptions & { include?: "safe"[] } = {}): Promise<RefundResponse> {
    const params = { path: { id }, query: options.include ? { include: options.include } : {} };
    const { data } = await this.http.GET("/api/refunds/{id}", { params, ...this.given(options) });
    return this.#refund(data!);
  }

  /** Cancels a prepared refund before its transaction is signed. */
  async cancelRefund(id: string, options: CallOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.POST("/api/refunds/{id}/cancel", { params: { path: { id } }, ...this.given(options, again) });
    return this.#refund(data!);
  }

  /** Approves the address that a payer named without a signature. */
  async approveRefund(id: string, body: ApproveRefundRequest, options: CallOptions = {}): Promise<RefundResponse> {
    const { data } = await this.http.POST("/api/refunds/{id}/approve", { params: { path: { id } }, body, ...this.given(options, again) });
    return this.#refund(data!);
  }

  /**
   * Records that you are sending a refund, before its transaction is signed. It fails with `refund_submitted` if
   * somebody else is sending it.
   */
  async submitRefund(id: string, body: SubmitRefundRequest = {}, options: CreateOptions = {}): Promise<Submission> {
    const { data } = await this.http.POST("/api/refunds/{id}/submissions", { params: { path: { id } }, body, ...this.given(options, again) });
    return data!.submission;
  }

  /** Records the transaction of a submission. */
  async recordTransaction(refundId: string, submissionId: string, body: RecordTransactionRequest, options: CallOptions = {}): Promise<Submission> {
    const { data } = await this.http.PUT("/api/refunds/{id}/submissions/{submissionId}", { params: { path: { id: refundId, submissionId } }, body, ...this.given(options, again) });
    return data!.submission;
  }

  /**
   * Records that no transaction was sent, so that the refund can be submitted again. `checkedInWallet` declares that a
   * person made sure in the wallet that it was not and will not be executed. The service asks for that if a contract
   * sends the refund and the service cannot find it out.
   */
  async withdrawSubmission(refundId: string, submissionId: string, options: CallOptions & { checkedInWallet?: boolean } = {}): Promise<Submission> {
    const params = { path: { id: refundId, submissionId }, query: options.checkedInWallet ? { checkedInWallet: true } : {} };
    const { data } = await this.http.POST("/api/refunds/{id}/submissions/{submissionId}/withdraw", { params, ...this.given(options, again) });
    return data!.submission;
  }

  /** Returns a response with an absolute claimUrl. It is a path if the service is not configured with its public URL. */
  #refund(response: RefundResponse): RefundResponse {
    return response.claimUrl?.startsWith("/") ? { ...response, claimUrl: this.url + response.claimUrl } : response;
  }

  /** Adds up the payments and refunds that were confirmed in a period. */
  async getSettlementReport(
    query: paths["/api/reports/settlement"]["get"]["parameters"]["query"],
    options: CallOptions = {},
  ): Promise<SettlementReport> {
    const { data } = await this.http.GET("/api/reports/settlement", { params: { query }, ...this.given(options, report) });
    return data!.report;
  }

  /** Returns the account of a merchant's month. */
  async getStatement(query: paths["/api/reports/statement"]["get"]["parameters"]["query"], options: CallOptions = {}): Promise<Statement> {
    const { data } = await this.http.GET("/api/reports/statement", { params: { query }, ...this.given(options, report) });
    return data!.statement;
  }

  /** Adds up the newest 5,000 invoices of a filter, by chain and currency. */
  async getInvoiceReport(filter: Filter<"/api/reports/invoices"> = {}, options: CallOptions = {}): Promise<InvoiceReport> {
    const { data } = await this.http.GET("/api/reports/invoices", { params: { query: filter }, ...this.given(options) });
    return data!.report;
  }

  /** Returns the sums of the last days, the sums of open and expired invoices, and how far chains are read. */
  async getSummary(query: paths["/api/reports/summary"]["get"]["parameters"]["query"], options: CallOptions = {}): Promise<Summary> {
    const { data } = await this.http.GET("/api/reports/summary", { params: { query }, ...this.given(options) });
    return data!.summary;
  }

  /** Exports all invoices as CSV, in parts. Times are in the time zone `timezone`. A broken export throws. */
  exportInvoices(filter: ExportFilter<"/api/invoices"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/invoices", filter, options);
  }

  /** Exports payments as CSV, like exportInvoices. */
  exportPayments(filter: ExportFilter<"/api/payments"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/payments", filter, options);
  }

  /** Exports refunds as CSV, like exportInvoices. */
  exportRefunds(filter: ExportFilter<"/api/refunds"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/refunds", filter, options);
  }

  /** Exports customers as CSV, like exportInvoices. */
  exportCustomers(filter: ExportFilter<"/api/customers"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/customers", filter, options);
  }

  /** Exports payment links as CSV, like exportInvoices. */
  exportPaymentLinks(filter: ExportFilter<"/api/payment-links"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/payment-links", filter, options);
  }

  /** Exports events as CSV, like exportInvoices. */
  exportEvents(filter: ExportFilter<"/api/events"> = {}, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exported("/api/events", filter, options);
  }

  #exported(path: string, filter: object, options: CallOptions): AsyncGenerator<Uint8Array, void> {
    return exported(this.request(path, filter, "text/csv, application/problem+json", options), this.settings(options));
  }
}

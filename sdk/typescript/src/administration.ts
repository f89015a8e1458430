import type {
  Approval,
  ApprovalResponse,
  Attempt,
  AuditEntry,
  AuditVerification,
  CreateKeyRequest,
  CreateMerchantRequest,
  CreatePaymentLinkRequest,
  CreateSignInLinkRequest,
  Key,
  KeySecretResponse,
  LoggedRequest,
  MailReport,
  Merchant,
  MerchantOverview,
  PaymentLink,
  PutWebhookRequest,
  RescanResponse,
  ResumeResponse,
  ServiceStatus,
  SignInLink,
  UpdateMerchantRequest,
  UpdatePaymentLinkRequest,
  Webhook,
  WebhookSecretResponse,
} from "./openapi.js";
import { again, Connection } from "./connection.js";
import { pages, type List } from "./pages.js";
import type { CallOptions, CreateOptions, Filter } from "./types.js";

/** Administration of the service: keys, merchants, their endpoints, and the log of such changes. */
export class Administration extends Connection {
  /** Creates a key. The secret is shown only here. */
  async createKey(body: CreateKeyRequest, options: CallOptions = {}): Promise<KeySecretResponse> {
    return (await this.http.POST("/api/keys", { body, ...this.given(options) })).data!;
  }

  /** Lists keys, newest first. Pages are requested as needed. */
  listKeys(filter: Filter<"/api/keys"> = {}, options: CallOptions = {}): List<Key> {
    return pages(
      async (cursor) => (await this.http.GET("/api/keys", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.keys,
    );
  }

  /** Creates a key that replaces another, which stays valid for the overlap. The secret is shown only here. */
  async rotateKey(id: string, overlapSeconds: number, options: CallOptions = {}): Promise<KeySecretResponse> {
    const { data } = await this.http.POST("/api/keys/{id}/rotate", { params: { path: { id } }, body: { overlapSeconds }, ...this.given(options) });
    return data!;
  }

  /**
   * Makes a link that signs the holder of a key in at the dashboard once: the holder of the client's key, or of another
   * one. Its path is at the service's host.
   */
  async createSignInLink(body: CreateSignInLinkRequest = {}, options: CallOptions = {}): Promise<SignInLink> {
    return (await this.http.POST("/api/sign-in-links", { body, ...this.given(options) })).data!;
  }

  /** Revokes a key. */
  async revokeKey(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/keys/{id}", { params: { path: { id } }, ...this.given(options, again) });
  }

  /** Lists entries of the audit log, newest first. Pages are requested as needed. */
  listAuditEntries(filter: Filter<"/api/audit"> = {}, options: CallOptions = {}): List<AuditEntry> {
    return pages(
      async (cursor) => (await this.http.GET("/api/audit", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.entries,
    );
  }

  /** Lists requests for approval, newest first. Pages are requested as needed. */
  listApprovals(filter: Filter<"/api/approvals"> = {}, options: CallOptions = {}): List<Approval> {
    return pages(
      async (cursor) => (await this.http.GET("/api/approvals", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.approvals,
    );
  }

  /** Fetches a request for approval, with its votes. */
  async getApproval(id: string, options: CallOptions = {}): Promise<ApprovalResponse> {
    return (await this.http.GET("/api/approvals/{id}", { params: { path: { id } }, ...this.given(options) })).data!;
  }

  /** Lists the last requests with keys, most recently ended first. Pages are requested as needed. */
  listRequests(filter: Filter<"/api/requests"> = {}, options: CallOptions = {}): List<LoggedRequest> {
    return pages(
      async (cursor) => (await this.http.GET("/api/requests", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.requests,
    );
  }

  /** Fetches the state of the process that answers, with a key of the operator. */
  async getServiceStatus(options: CallOptions = {}): Promise<ServiceStatus> {
    return (await this.http.GET("/api/operator/status", this.given(options))).data!;
  }

  /** Lists merchants with their figures, with a key of the operator. Pages are requested as needed. */
  listMerchantOverviews(filter: Filter<"/api/operator/merchants"> = {}, options: CallOptions = {}): List<MerchantOverview> {
    return pages(
      async (cursor) => (await this.http.GET("/api/operator/merchants", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.merchants,
    );
  }

  /** Reports a mail that came back, with a key of the operator: the delivery status notification (RFC 3464) that its sender got. */
  async reportMail(message: Blob, options: CallOptions = {}): Promise<MailReport> {
    const { data } = await this.http.POST("/api/operator/mails/report", {
      body: "", bodySerializer: () => message, headers: { "Content-Type": "message/rfc822" }, ...this.given(options, again),
    });
    return data!;
  }

  /** Makes the service read blocks of a chain again, from a number on, with a key of the operator. */
  async rescanChain(chainKey: string, from: number, options: CallOptions = {}): Promise<RescanResponse> {
    const { data } = await this.http.POST("/api/operator/chains/{chainKey}/rescan", { params: { path: { chainKey } }, body: { from }, ...this.given(options, again) });
    return data!;
  }

  /** Ends the halt of a chain, with a key of the operator. */
  async resumeChain(chainKey: string, options: CallOptions = {}): Promise<ResumeResponse> {
    const { data } = await this.http.POST("/api/operator/chains/{chainKey}/resume", { params: { path: { chainKey } }, ...this.given(options, again) });
    return data!;
  }

  /** Verifies the audit log, with a key of the operator. `head` is an earlier head. */
  async verifyAudit(head?: string, options: CallOptions = {}): Promise<AuditVerification> {
    const { data } = await this.http.POST("/api/operator/audit/verify", { body: head === undefined ? {} : { head }, ...this.given(options, again) });
    return data!;
  }

  /** Lists merchants in the order of their ids. Pages are requested as needed. */
  listMerchants(filter: Filter<"/api/merchants"> = {}, options: CallOptions = {}): List<Merchant> {
    return pages(
      async (cursor) => (await this.http.GET("/api/merchants", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.merchants,
    );
  }

  /** Creates a merchant. */
  async createMerchant(body: CreateMerchantRequest, options: CallOptions = {}): Promise<Merchant> {
    return (await this.http.POST("/api/merchants", { body, ...this.given(options) })).data!.merchant;
  }

  /** Fetches a merchant. */
  async getMerchant(id: string, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.GET("/api/merchants/{id}", { params: { path: { id } }, ...this.given(options) });
    return data!.merchant;
  }

  /** Changes a merchant. */
  async updateMerchant(id: string, body: UpdateMerchantRequest, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.PATCH("/api/merchants/{id}", { params: { path: { id } }, body, ...this.given(options, again) });
    return data!.merchant;
  }

  /** Returns a merchant's logo, a PNG image. */
  async getMerchantLogo(id: string, options: CallOptions = {}): Promise<Blob> {
    return (await this.http.GET("/api/merchants/{id}/logo", { params: { path: { id } }, parseAs: "blob", headers: { Accept: "image/png, application/problem+json" }, ...this.given(options) })).data!;
  }

  /** Sets a merchant's logo, a PNG, JPEG or GIF image. */
  async putMerchantLogo(id: string, image: Blob, options: CallOptions = {}): Promise<Merchant> {
    const { data } = await this.http.PUT("/api/merchants/{id}/logo", {
      params: { path: { id } }, body: "", bodySerializer: () => image, headers: { "Content-Type": image.type || "application/octet-stream" },
      ...this.given(options, again),
    });
    return data!.merchant;
  }

  /** Removes a merchant's logo. */
  async deleteMerchantLogo(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/logo", { params: { path: { id } }, ...this.given(options, again) });
  }

  /** Takes a settlement address away from a merchant. Its existing invoices keep the address. */
  async releaseMerchantAddress(id: string, address: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/addresses/{address}", { params: { path: { id, address } }, ...this.given(options) });
  }

  /** Creates a payment link. */
  async createPaymentLink(body: CreatePaymentLinkRequest, options: CreateOptions = {}): Promise<PaymentLink> {
    return this.#link((await this.http.POST("/api/payment-links", { body, ...this.given(options, again) })).data!.link);
  }

  /** Lists payment links, newest first. Pages are requested as needed. */
  listPaymentLinks(filter: Filter<"/api/payment-links"> = {}, options: CallOptions = {}): List<PaymentLink> {
    return pages(
      async (cursor) => (await this.http.GET("/api/payment-links", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.links.map((link) => this.#link(link)),
    );
  }

  /** Fetches a payment link. */
  async getPaymentLink(id: string, options: CallOptions = {}): Promise<PaymentLink> {
    return this.#link((await this.http.GET("/api/payment-links/{id}", { params: { path: { id } }, ...this.given(options) })).data!.link);
  }

  /** Changes a payment link, or archives it. Absent members stay as they are; null removes a member. */
  async updatePaymentLink(id: string, body: UpdatePaymentLinkRequest, options: CallOptions = {}): Promise<PaymentLink> {
    const { data } = await this.http.PATCH("/api/payment-links/{id}", { params: { path: { id } }, body, ...this.given(options, again) });
    return this.#link(data!.link);
  }

  /** Returns a link with an absolute URL. It is a path if the service is not configured with its public URL. */
  #link(link: PaymentLink): PaymentLink {
    return link.url.startsWith("/") ? { ...link, url: this.url + link.url } : link;
  }

  /** Fetches a merchant's webhook endpoint. */
  async getWebhook(merchantId: string, options: CallOptions = {}): Promise<Webhook> {
    const { data } = await this.http.GET("/api/merchants/{id}/webhook", { params: { path: { id: merchantId } }, ...this.given(options) });
    return data!.webhook;
  }

  /** Sets a merchant's webhook URL. The first call returns the signing secret, which is shown only then. */
  async putWebhook(merchantId: string, body: PutWebhookRequest, options: CallOptions = {}): Promise<{ webhook: Webhook; secret?: string }> {
    const { data } = await this.http.PUT("/api/merchants/{id}/webhook", { params: { path: { id: merchantId } }, body, ...this.given(options) });
    return data!;
  }

  /** Posts a test event to a merchant's endpoint, and returns the attempt. */
  async pingWebhook(merchantId: string, options: CallOptions = {}): Promise<Attempt> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/ping", { params: { path: { id: merchantId } }, ...this.given(options) });
    return data!.ping;
  }

  /** Stages the secret that will replace the active one. It is shown only here. */
  async stageWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<WebhookSecretResponse> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/secret", { params: { path: { id: merchantId } }, ...this.given(options) });
    return data!;
  }

  /** Makes the staged secret the active one. */
  async promoteWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<Webhook> {
    const { data } = await this.http.POST("/api/merchants/{id}/webhook/secret/promote", {
      params: { path: { id: merchantId } }, ...this.given(options),
    });
    return data!.webhook;
  }

  /** Drops the staged secret. */
  async dropWebhookSecret(merchantId: string, options: CallOptions = {}): Promise<void> {
    await this.http.DELETE("/api/merchants/{id}/webhook/secret", { params: { path: { id: merchantId } }, ...this.given(options) });
  }
}

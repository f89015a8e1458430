import { QuittanceError, type FailedCall } from "./error.js";
import type { ErrorCode, Problem } from "./openapi.js";

/** A response of the service, or of a proxy before it, that is not a success. */
export class ResponseError extends QuittanceError {
  override readonly name = "ResponseError";
  declare readonly status: number;
  /** The error, for programs; undefined if a proxy answered. More codes may be added. */
  declare readonly code: ErrorCode | undefined;
  declare readonly requestId: string | undefined;
  /** The whole problem document; without members if a proxy answered. */
  readonly problem: Partial<Problem>;
  /** The invalid member or parameter, with `invalid_field`. */
  readonly field: string | undefined;
  /** The explanation of the error, for people. */
  readonly detail: string | undefined;
  /** With `reference_taken`: the invoice that has the reference. With `draft_deleted`: the draft. */
  readonly invoiceId: string | undefined;
  /** With `approval_required`: the request for approval. */
  readonly approvalId: string | undefined;
  /** With `cursor_gone` and `authorization_refused`: the reason. */
  readonly reason: string | undefined;
  /** With `cursor_gone`: the cursor from which to continue. */
  readonly after: string | undefined;
  /** The milliseconds to wait before a retry, or 0 if the service did not send a time. */
  readonly retryAfterMs: number;

  constructor(response: Response, body: string, now: number, call: FailedCall) {
    const problem = parse(body);
    super(problem.code ? `${response.status} ${problem.code}: ${problem.detail}` : `answered ${response.status} ${response.statusText}`, call);
    this.status = response.status;
    this.problem = problem;
    this.code = problem.code;
    this.field = problem.field;
    this.detail = problem.detail;
    this.invoiceId = problem.invoiceId;
    this.approvalId = problem.approvalId;
    this.reason = problem.reason;
    this.after = problem.after;
    this.requestId = problem.requestId ?? requestId(response);
    this.retryAfterMs = retryAfter(response.headers.get("Retry-After"), now);
  }
}

/** There was no complete response. See the cause. */
export class ConnectionError extends QuittanceError {
  override readonly name = "ConnectionError";
  /** Whether no part of the request was sent, because there was no connection. */
  readonly unsent: boolean;

  constructor(cause: unknown, call: FailedCall) {
    super(`no complete response: ${messages(cause)}`, call, { cause });
    this.unsent = unsent(cause);
  }
}

/** A call, an attempt or a silence took too long. */
export class TimeoutError extends QuittanceError {
  override readonly name = "TimeoutError";
}

/** A success that the service would not answer, such as a proxy's page. The call may have taken effect. */
export class InvalidResponseError extends QuittanceError {
  override readonly name = "InvalidResponseError";
  declare readonly status: number;
  declare readonly requestId: string | undefined;
  /** Whether another attempt may get another response. */
  readonly repeatable: boolean;

  constructor(response: Response, why: string, call: FailedCall, repeatable = true) {
    super(`answered ${response.status}, but not as the service does: ${why}`, call);
    this.status = response.status;
    this.requestId = requestId(response);
    this.repeatable = repeatable;
  }
}

/** Returns the id that the service gave to the request. */
export function requestId(response: Response): string | undefined {
  return response.headers.get("X-Request-Id") ?? undefined;
}

/** Returns the problem document, or an empty one if the body is something else. */
function parse(body: string): Partial<Problem> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof (value as Problem | null)?.code === "string" ? (value as Problem) : {};
  } catch {
    return {};
  }
}

/** Returns the milliseconds of a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. */
function retryAfter(text: string | null, now: number): number {
  if (text === null) {
    return 0;
  }
  if (/^\d+$/.test(text)) {
    return Number(text) * 1000;
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(date - now, 0);
}

/** The maximum number of errors that are read in a chain of causes: a chain may be a cycle. */
const maxCauses = 8;

/** Returns an error and its causes. */
function causes(error: unknown): Error[] {
  const all = [];
  for (let e = error; e instanceof Error && all.length < maxCauses; e = e.cause) {
    all.push(e);
  }
  return all;
}

function messages(error: unknown): string {
  return causes(error).map((e) => e.message || e.name).join(": ") || String(error);
}

/** The error codes of Node, Deno and Bun which mean that there was no connection to send a request on. */
const noConnection = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ConnectionRefused"]);

function unsent(error: unknown): boolean {
  return causes(error).some((e) => "code" in e && typeof e.code === "string" && noConnection.has(e.code));
}

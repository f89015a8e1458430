import type { ErrorCode, Problem } from "./openapi.js";

/** A response of the service, or of a proxy before it, that is not a success. */
export class QuittanceError extends Error {
  override readonly name = "QuittanceError";
  /** The HTTP status. */
  readonly status: number;
  /** The error, for programs; undefined if a proxy answered. More codes may be added. */
  readonly code: ErrorCode | undefined;
  /** The member or parameter that is wrong, with `invalid_field`. */
  readonly field: string | undefined;
  /** What was wrong with this request, for people. */
  readonly detail: string | undefined;
  /** With `cursor_gone` and `authorization_refused`: why. */
  readonly reason: string | undefined;
  /** With `cursor_gone`: the cursor from which to continue. */
  readonly after: string | undefined;
  /** The id of the request, to quote to the operator of the service. */
  readonly requestId: string | undefined;
  /** The milliseconds to wait before a retry, or 0 if the service did not say. */
  readonly retryAfterMs: number;

  constructor(response: Response, body: string, now: number) {
    const problem = parse(body);
    super(problem.code ? `${response.status} ${problem.code}: ${problem.detail}` : `answered ${response.status} ${response.statusText}`);
    this.status = response.status;
    this.code = problem.code;
    this.field = problem.field;
    this.detail = problem.detail;
    this.reason = problem.reason;
    this.after = problem.after;
    this.requestId = problem.requestId ?? response.headers.get("X-Request-Id") ?? undefined;
    this.retryAfterMs = retryAfter(response.headers.get("Retry-After"), now);
  }
}

/** Returns the problem document, or nothing if the body is something else. */
function parse(body: string): Partial<Problem> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? value : {};
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

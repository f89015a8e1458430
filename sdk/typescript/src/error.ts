/** The call that failed. */
export interface FailedCall {
  method: string;
  /** The path of the URL, without its query. */
  path: string;
  /** The number of attempts made. */
  attempts: number;
}

/** The class of all errors that this package makes. The reason of the caller's signal is thrown unchanged. */
export class QuittanceError extends Error {
  override readonly name: string = "QuittanceError";
  /** The method of the call that failed; undefined if the error is not about a call. */
  readonly method: string | undefined;
  /** The path of the call, without its query. */
  readonly path: string | undefined;
  /** The number of attempts made. */
  readonly attempts: number | undefined;
  /** The HTTP status, if there was a response. */
  declare readonly status?: number | undefined;
  /** The error code, for programs. */
  declare readonly code?: string | undefined;
  /** The id of the request, to give to the operator of the service. */
  declare readonly requestId?: string | undefined;

  constructor(message: string, call?: FailedCall, options?: ErrorOptions) {
    const repeated = call && call.attempts > 1 ? ` (${call.attempts} attempts)` : "";
    super(call ? `${call.method} ${call.path}: ${message}${repeated}` : message, options);
    this.method = call?.method;
    this.path = call?.path;
    this.attempts = call?.attempts;
  }
}

/** A function of this package was called with an invalid argument. */
export class InvalidArgumentError extends QuittanceError {
  override readonly name = "InvalidArgumentError";
}

import { QuittanceError } from "../error.js";

/** Why a signature was refused. The names are the interface's. */
export type SignatureErrorCode = "missing_header" | "malformed_header" | "stale_timestamp" | "bad_signature";

/** A request that Quittance did not send, or did not send recently. Answer it with 401. */
export class SignatureError extends QuittanceError {
  override readonly name = "SignatureError";
  /** The HTTP status to answer with. */
  override readonly status = 401;

  constructor(
    override readonly code: SignatureErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A body that is not an event. Answer it with 400. */
export class InvalidEventError extends QuittanceError {
  override readonly name = "InvalidEventError";
  /** The HTTP status to answer with. */
  override readonly status = 400;
  override readonly code = "invalid_payload";

  constructor(message: string, options?: ErrorOptions) {
    super(message, undefined, options);
  }
}

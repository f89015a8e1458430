/** Why a signature was refused. The names are those of the interface. */
export type SignatureErrorCode = "missing_header" | "malformed_header" | "stale_timestamp" | "bad_signature";

/** A request that Quittance did not send, or not now. Answer it with 401. */
export class SignatureError extends Error {
  override readonly name = "SignatureError";
  /** The HTTP status to answer with. */
  readonly status = 401;

  constructor(
    readonly code: SignatureErrorCode,
    message: string,
  ) {
    super(message);
  }
}

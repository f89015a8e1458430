import createClient, { createQuerySerializer, type Client } from "openapi-fetch";
import type { paths } from "./openapi.js";
import { retrying, type RetryOptions } from "./retry.js";
import type { CallOptions } from "./types.js";

/** What a client is given. */
export interface QuittanceOptions extends RetryOptions {
  /** Where the service is, such as https://pay.example.com. */
  url: string;
  /** A key of the operator or of one merchant. */
  key?: string;
  /** The version of the interface that responses are of, such as 2026-11-22; that of the key if left out. */
  version?: string;
  /** Makes idempotency keys; crypto.randomUUID if left out. */
  randomUUID?: () => string;
}

/** How parameters of a query are written. */
const query = { array: { style: "form", explode: false } } as const;

/** The connection of a client to its service. */
export class Connection {
  /** The client of openapi-fetch that all methods use, with retries and errors as theirs. */
  readonly http: Client<paths, "application/json">;
  readonly #headers: Record<string, string>; // of every request; private, because it has the key
  protected readonly url: string; // of the service, without a slash at its end
  protected readonly options: RetryOptions;
  protected readonly fetch: (request: Request) => Promise<Response>; // repeats every request
  protected readonly patientFetch: (request: Request) => Promise<Response>; // for what takes up to a minute
  protected readonly uuid: () => string;

  constructor({ url: base, key, version, randomUUID, ...options }: QuittanceOptions) {
    const url = new URL(base);
    if (!/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
      throw new TypeError(`the url ${base} must be of the form https://host or https://host/path`);
    }
    this.url = url.href.replace(/\/+$/, "");
    this.#headers = {
      ...(key && { Authorization: `Bearer ${key}` }),
      ...(version && { "Quittance-Version": version }),
    };
    this.options = options;
    this.fetch = retrying(options, true);
    this.patientFetch = retrying(options, true, 60_000);
    this.uuid = randomUUID ?? (() => crypto.randomUUID());
    this.http = createClient<paths, "application/json">({
      baseUrl: this.url,
      fetch: retrying(options),
      headers: { Accept: "application/json, application/problem+json", ...this.#headers },
      querySerializer: query,
    });
    this.http.use({ onRequest: ({ params }) => checkIds(params.path ?? {}) });
  }

  /** Returns a request that asks for a media type, for what the client of openapi-fetch does not read. */
  protected request(path: string, filter: object, accept: string): Request {
    const parameters = createQuerySerializer<object>({ ...query })(filter);
    return new Request(this.url + path + (parameters && `?${parameters}`), { headers: { Accept: accept, ...this.#headers } });
  }
}

/** Throws a TypeError for an id that results in another path. */
function checkIds(ids: object): undefined {
  for (const id of Object.values(ids)) {
    if (/^\.{0,2}$/.test(String(id))) {
      throw new TypeError(`${JSON.stringify(id)} is no id`);
    }
  }
}

/** Returns the options of openapi-fetch for those of a call. */
export function given(options: CallOptions): { signal?: AbortSignal } {
  return options.signal ? { signal: options.signal } : {};
}

import createClient, { createQuerySerializer, type Client } from "openapi-fetch";
import { call, type CallSettings } from "./call.js";
import { InvalidArgumentError } from "./error.js";
import type { paths } from "./openapi.js";
import { checkBounds, type ResponseInfo, type RetryOptions } from "./retry.js";
import { checked } from "./shape.js";
import type { CallOptions, CreateOptions } from "./types.js";

/** The options of a client. */
export interface QuittanceOptions extends RetryOptions {
  /** The URL of the service, such as https://pay.example.com. */
  url: string;
  /**
   * A key of the operator or of one merchant. Leave it out only for a service that needs no key, as `quittance dev` can
   * be.
   */
  key?: string;
  /** The version of the interface for responses, such as 2026-11-22; the key's version if left out. */
  version?: string | undefined;
  /** Makes idempotency keys; crypto.randomUUID if left out. */
  randomUUID?: (() => string) | undefined;
}

/** The notation of query parameters. */
const query = { array: { style: "form", explode: false } } as const;

/** The special properties of a call. */
interface CallKind {
  /** Whether the service may receive the request twice with the effect of one. */
  idempotent?: boolean;
  /** How long the service may wait before it answers. */
  waitMs?: number;
}

/** Calls that the service may receive twice. */
export const again: CallKind = { idempotent: true };
/** Calls that the service may receive twice, and that take up to a minute. */
export const patient: CallKind = { idempotent: true, waitMs: 60_000 };
/** Calls for a report, which the service makes for up to two minutes. */
export const report: CallKind = { idempotent: true, waitMs: 135_000 };

/** The connection of a client to its service. */
export class Connection {
  /** The client of openapi-fetch that all methods use, with this package's retries and errors. */
  readonly http: Client<paths, "application/json">;
  #lastResponse: ResponseInfo | undefined;
  readonly #headers: Record<string, string>; // of every request; private, because they contain the key
  readonly #operations = new WeakMap<Request, string>(); // path templates of the requests for JSON
  readonly #uuid: () => string;
  readonly #options: RetryOptions;
  protected readonly url: string; // of the service, without a slash at its end

  /** Throws an InvalidArgumentError for an invalid url, a key that is empty or undefined, and limits without effect. */
  constructor(given: QuittanceOptions) {
    const { url, key, version, randomUUID, ...options } = given;
    this.url = serviceURL(url);
    checkBounds(options);
    setHeader(new Headers(), "Quittance-Version", version ?? "");
    this.#headers = { ...("key" in given && authorization(key)), ...(version !== undefined && { "Quittance-Version": version }) };
    this.#options = options;
    this.#uuid = randomUUID ?? (() => crypto.randomUUID());
    this.http = createClient<paths, "application/json">({
      baseUrl: this.url,
      fetch: (request) => call(request, this.settings({}, request)),
      headers: { Accept: "application/json, application/problem+json", ...this.#headers },
      querySerializer: query,
    });
    this.http.use({
      onRequest: ({ request, schemaPath, params, options: { parseAs } }) => {
        checkIds(params.path ?? {});
        if (parseAs === "json") {
          this.#operations.set(request, schemaPath);
        }
      },
    });
  }

  /** The last successful response. For concurrent calls, give each an `onResponse` instead. */
  get lastResponse(): ResponseInfo | undefined {
    return this.#lastResponse;
  }

  /**
   * Returns the arguments of openapi-fetch for a call. The signal is not among them, because a request may lose its
   * signal.
   */
  protected given(options: CreateOptions, kind: CallKind = {}): { fetch: (request: Request) => Promise<Response> } {
    return {
      fetch: async (request) => {
        this.#addHeaders(request, options);
        const idempotent = kind.idempotent ?? (request.method === "GET");
        return call(request, { ...this.settings(options, request), ...kind, idempotent });
      },
    };
  }

  /** Returns a request for a media type that openapi-fetch does not read. */
  protected request(path: string, filter: object, accept: string, options: CallOptions): Request {
    const parameters = createQuerySerializer<object>({ ...query })(filter);
    const request = new Request(this.url + path + (parameters && `?${parameters}`), { headers: { Accept: accept, ...this.#headers } });
    this.#addHeaders(request, options);
    return request;
  }

  /** Returns the settings of a call. The checks of its response depend on the request. */
  protected settings({ signal, timeoutMs, attemptTimeoutMs, retries, onResponse }: CallOptions, request?: Request): CallSettings {
    const all = this.#options;
    const operation = request && this.#operations.get(request);
    const settings: CallSettings = {
      ...all, signal, timeoutMs: timeoutMs ?? all.timeoutMs, attemptTimeoutMs: attemptTimeoutMs ?? all.attemptTimeoutMs, retries: retries ?? all.retries,
      check: operation === undefined ? mediaType(request?.headers.get("Accept") ?? "") : checked(`${request!.method} ${operation}`),
      onResponse: (info) => {
        this.#lastResponse = info;
        all.onResponse?.(info);
        onResponse?.(info);
      },
    };
    checkBounds(settings);
    return settings;
  }

  #addHeaders({ headers, method }: Request, options: CreateOptions): void {
    if (method !== "GET") {
      setHeader(headers, "Idempotency-Key", options.idempotencyKey ?? this.#uuid());
    }
    if ("key" in options) { // also if it is undefined, because the client's key may be another merchant's
      headers.set("Authorization", authorization(options.key).Authorization);
    }
    if (options.version !== undefined) {
      setHeader(headers, "Quittance-Version", options.version);
    }
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      setHeader(headers, name, value);
    }
  }
}

/** Sets a header, or throws an InvalidArgumentError without the value, which may be a secret. */
function setHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new InvalidArgumentError(`the header ${JSON.stringify(name)} has a name or a value that no header can have, such as one with a line break`);
  }
}

/** Returns the check that a response has one of the media types of an Accept header. */
function mediaType(accept: string): (response: Response) => string | undefined {
  return ({ headers }) => {
    const type = headers.get("Content-Type")?.split(";")[0]!.trim();
    return type && accept.includes(type) ? undefined : `it is ${type ?? "of no type"}, not ${accept}`;
  };
}

/** Returns the URL without a slash at its end, or throws an InvalidArgumentError. */
function serviceURL(text: string): string {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // text that is not a URL is refused below
  }
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new InvalidArgumentError(`the option url must be of the form https://host or https://host/path; it is ${String(text)}`);
  }
  return url.href.replace(/\/+$/, "");
}

/** Returns the header for a key, or throws an InvalidArgumentError without the key's text. */
function authorization(key: unknown): { Authorization: string } {
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) {
    const what = typeof key !== "string" ? String(key) : key === "" ? "empty" : "a text with blanks or other characters that no key has";
    throw new InvalidArgumentError(`the option key must be a key of the service, such as qk_…; it is ${what}. Is the environment variable set?`);
  }
  return { Authorization: `Bearer ${key}` };
}

/** Throws an InvalidArgumentError for an id that would change the path. */
function checkIds(ids: object): void {
  for (const id of Object.values(ids)) {
    if (id === undefined || id === null || /^\.{0,2}$/.test(String(id))) {
      throw new InvalidArgumentError(`${String(JSON.stringify(id))} is no id`);
    }
  }
}

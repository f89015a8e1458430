import { shapes } from "./shapes.js";

/**
 * The checks of a value: the kind of a primitive or an array, the shape of the elements of an array, or the required
 * members of an object.
 */
export type Shape = string | readonly [Shape] | { readonly [member: string]: Shape };

/**
 * Returns the check of successful responses to an operation, such as "GET /api/invoices". It looks for the members that
 * openapi.yaml requires of a response, and for the ids of objects in them, which is enough to recognize foreign
 * responses. Objects may have more members.
 */
export function checked(operation: string): ((response: Response, body: Uint8Array) => string | undefined) | undefined {
  const shape = shapes[operation];
  if (shape === undefined) {
    return undefined;
  }
  return (response, body) => {
    if (shape === null) {
      return response.status === 204 ? undefined : "it should be 204 without a body";
    }
    const type = response.headers.get("Content-Type");
    if (type !== null && type.split(";")[0]!.trim() !== "application/json") {
      return `it is of the type ${type}, not application/json`;
    }
    let value: unknown;
    try {
      value = JSON.parse(new TextDecoder().decode(body));
    } catch {
      return body.length === 0 ? "it has no body" : "the body is not JSON";
    }
    return mismatch(value, shape, "the body");
  };
}

/** Returns how a value differs from its shape, or undefined. */
function mismatch(value: unknown, shape: Shape, name: string): string | undefined {
  if (typeof shape === "string") {
    return kindOf(value) === shape ? undefined : `${name} is not of type ${shape}`;
  }
  if (isArray(shape)) {
    if (!Array.isArray(value)) {
      return `${name} is not an array`;
    }
    return first(value, (element, i) => mismatch(element, shape[0], `${name}[${i}]`));
  }
  if (kindOf(value) !== "object") {
    return `${name} is not an object`;
  }
  return first(Object.entries(shape), ([member, of]) => mismatch((value as Record<string, unknown>)[member], of, `${name}'s ${member}`));
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
}

function isArray(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** Returns the first result that is not undefined. */
function first<T>(list: readonly T[], f: (element: T, i: number) => string | undefined): string | undefined {
  for (const [i, element] of list.entries()) {
    const result = f(element, i);
    if (result !== undefined) {
      return result;
    }
  }
  return undefined;
}

import { InvalidArgumentError, QuittanceError } from "./error.js";
import { Moves } from "./gone.js";

/** The query parameter of a page after the first. */
export type Cursor = { cursor?: string };

/** A page of a list. */
export interface Page<T> {
  items: readonly T[];
  /** The cursor of the next page; undefined after the last one. */
  nextCursor: string | undefined;
}

/** A list. Iterate over it, or take one page, or an array. */
export interface List<T, R = void> extends AsyncGenerator<T, R, undefined> {
  /** Fetches one page: the first one, or the one at a cursor. It does not affect the iteration. */
  page(cursor?: string): Promise<Page<T>>;
  /** Returns the next elements of the iteration, up to `limit`. */
  toArray(options: { limit: number }): Promise<T[]>;
}

/**
 * Returns the list of the elements of all pages. If the list cannot be continued from its cursor, it continues where
 * the service indicates. keep selects the elements that the iteration yields, and end returns the return value of the
 * iteration.
 */
export function pages<P extends { nextCursor?: string }, T, R = void>(
  get: (cursor: Cursor) => Promise<P>,
  elements: (page: P) => readonly T[],
  { keep = () => true, end }: { keep?: (element: T) => boolean; end?: () => R } = {},
): List<T, R> {
  async function* walk(): AsyncGenerator<T, R, undefined> {
    const moves = new Moves();
    for (let cursor: Cursor = {}; ; ) {
      let page: P;
      try {
        page = await get(cursor);
      } catch (error) {
        cursor = { cursor: moves.from(error) };
        continue;
      }
      yield* elements(page).filter(keep);
      if (page.nextCursor === undefined) {
        return end?.() as R;
      }
      if (page.nextCursor === cursor.cursor) {
        throw new QuittanceError("a page's nextCursor leads to the same page again");
      }
      cursor = { cursor: page.nextCursor };
    }
  }
  const iteration = walk();
  return Object.assign(iteration, {
    page: async (cursor?: string): Promise<Page<T>> => {
      const page = await get(cursor === undefined ? {} : { cursor });
      return { items: elements(page), nextCursor: page.nextCursor };
    },
    toArray: (options?: { limit?: number }): Promise<T[]> => toArray(iteration, options?.limit),
  });
}

async function toArray<T>(iteration: AsyncGenerator<T, unknown, undefined>, limit: number | undefined): Promise<T[]> {
  if (limit === undefined || !Number.isInteger(limit) || limit < 1) {
    throw new InvalidArgumentError(`the limit must be a whole number of at least 1; it is ${String(limit)}`);
  }
  const array: T[] = [];
  while (array.length < limit) {
    const next = await iteration.next();
    if (next.done) {
      break;
    }
    array.push(next.value);
  }
  return array;
}

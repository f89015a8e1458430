import { Moves } from "./gone.js";

/** The query parameter of a page after the first. */
export type Cursor = { cursor?: string };

/** Yields the elements of all pages. A list that does not continue from its cursor goes on where the service says. */
export async function* pages<P extends { nextCursor?: string }, T>(
  get: (cursor: Cursor) => Promise<P>,
  elements: (page: P) => readonly T[],
): AsyncGenerator<T, void> {
  const moves = new Moves();
  for (let cursor: Cursor = {}; ; ) {
    let page: P;
    try {
      page = await get(cursor);
    } catch (error) {
      cursor = { cursor: moves.from(error) };
      continue;
    }
    yield* elements(page);
    if (page.nextCursor === undefined) {
      return;
    }
    if (page.nextCursor === cursor.cursor) {
      throw new Error("a page's nextCursor leads to the same page again");
    }
    cursor = { cursor: page.nextCursor };
  }
}

/** The query parameter of a page after the first. */
export type Cursor = { cursor?: string };

/** Yields the elements of all pages. */
export async function* pages<P extends { nextCursor?: string }, T>(
  get: (cursor: Cursor) => Promise<P>,
  elements: (page: P) => readonly T[],
): AsyncGenerator<T, void> {
  for (let cursor: Cursor = {}; ; ) {
    const page = await get(cursor);
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

import { Administration } from "./administration.js";
import { EventsLostError, Moves, Positions, Recent } from "./gone.js";
import type { RedeliverEventsRequest } from "./openapi.js";
import { pages, type List } from "./pages.js";
import { stream, type StreamedEvent } from "./stream.js";
import type { CallOptions, EventRecord, Filter, StreamOptions } from "./types.js";

/** The calls about events. */
export class Events extends Administration {
  readonly #positions = new Positions();

  /**
   * Yields the events after a position as soon as they are recorded: `start`, `end`, or the position of an event. A
   * broken stream is continued where it broke, so that each event is yielded once. If the service's database was
   * restored from a backup, it continues from there, without the last 10,000 events that this client gave before the
   * position. It throws an EventsLostError if events after the position are no longer stored.
   */
  streamEvents(filter: Filter<"/api/events/stream"> = {}, after = "end", options: StreamOptions = {}): AsyncGenerator<StreamedEvent, void> {
    const request = (position: string) => this.request("/api/events/stream", { ...filter, after: position }, "text/event-stream", options);
    return stream(request, after, this.settings(options), this.#positions);
  }

  /** Lists events with the state of their deliveries, newest first. Pages are requested as needed. */
  listEvents(filter: Filter<"/api/events"> = {}, options: CallOptions = {}): List<EventRecord> {
    const got = new Recent(true);
    return pages(
      async (cursor) => (await this.http.GET("/api/events", { params: { query: { ...filter, ...cursor } }, ...this.given(options) })).data!,
      (page) => page.events as EventRecord[],
      { keep: (event) => !got.repeats(event.event.id) },
    );
  }

  /**
   * Fetches the events after a position, oldest first: `start`, `end`, or the position that the previous call returned.
   * Each event is returned exactly once; an empty page means that there are no more yet. After a restore of the
   * service's database, and if events are lost, it behaves like streamEvents.
   */
  async eventsAfter(after: string, filter: Filter<"/api/events"> = {}, options: CallOptions = {}): Promise<{ events: EventRecord[]; next: string }> {
    const got = this.#positions.take(after);
    const moves = new Moves();
    let next = after;
    try {
      for (;;) {
        let page;
        try {
          page = (await this.http.GET("/api/events", { params: { query: { ...filter, after } }, ...this.given(options) })).data!;
        } catch (error) {
          after = moves.from(error);
          got.move();
          continue;
        }
        after = page.nextCursor ?? after;
        const events = (page.events as EventRecord[]).filter((e) => !got.repeats(e.event.id));
        if (events.length > 0 || page.events.length === 0) {
          next = after;
          return { events, next };
        }
      }
    } catch (error) {
      next = error instanceof EventsLostError ? error.position : next;
      throw error;
    } finally {
      this.#positions.put(next, got);
    }
  }

  /** Fetches an event, with its delivery and every attempt. */
  async getEvent(id: string, options: CallOptions = {}): Promise<EventRecord> {
    const { data } = await this.http.GET("/api/events/{id}", { params: { path: { id } }, ...this.given(options) });
    return data as EventRecord;
  }

  /** Sends an event again. */
  async redeliverEvent(id: string, options: CallOptions = {}): Promise<EventRecord> {
    const { data } = await this.http.POST("/api/events/{id}/redeliver", { params: { path: { id } }, ...this.given(options) });
    return data as EventRecord;
  }

  /** Sends many events again, and returns their number. */
  async redeliverEvents(body: RedeliverEventsRequest, options: CallOptions = {}): Promise<number> {
    let sent = 0;
    for await (const n of pages(
      async (cursor) => (await this.http.POST("/api/events/redeliver", { body: { ...body, ...cursor }, ...this.given(options) })).data!,
      (page) => [page.redelivered],
    )) {
      sent += n;
    }
    return sent;
  }
}

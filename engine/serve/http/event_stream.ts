// Server-sent events, one block of text a pull: nothing is made before the client takes what was sent, so a slow client
// holds back its own answer and no memory. Leaving ends the answer at its next step.

import { apiErrorOf } from "./api_error.ts";
import type { FieldNames } from "./engine_words.ts";
import type { Call } from "./call.ts";

/** How a stream tells of what goes wrong in its middle. */
export interface StreamOptions {
  readonly names: FieldNames;
  readonly contentType?: string;
  /** The block for an error; OpenAI's by default. */
  readonly onError?: (body: Readonly<Record<string, unknown>>) => string;
  /** A block that readers skip, sent in long silence; empty where there is none. */
  readonly ping?: string;
}

const HEADERS = { "cache-control": "no-cache", "x-accel-buffering": "no" };

/** An event without a name. */
export function dataBlock(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A response of blocks. */
export function eventStream(
  call: Call,
  blocks: AsyncGenerator<string, void, void>,
  { names, contentType = "text/event-stream", onError = dataBlock, ping = ": \n\n" }: StreamOptions,
): Response {
  call.isHeld = true;
  const encoder = new TextEncoder();
  // A wait for the engine is told of when it outlasts two ticks.
  let timer: ReturnType<typeof setInterval> | undefined, ticks = 0, isWaiting = false;
  const end = (): void => {
    clearInterval(timer);
    call.end();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        // An empty piece would end a chunked body.
        if (isWaiting && ticks++ > 0 && ping !== "") controller.enqueue(encoder.encode(ping));
      }, call.options.limits.pingMs);
    },
    async pull(controller) {
      [ticks, isWaiting] = [0, true];
      try {
        const { done, value } = await blocks.next();
        isWaiting = false;
        if (!done) return controller.enqueue(encoder.encode(value));
      } catch (error) {
        if (call.notes.hasLeft) return end();
        call.notes.error = String((error as Error)?.message ?? error);
        controller.enqueue(encoder.encode(onError(apiErrorOf(error, names).body)));
      }
      end();
      controller.close();
    },
    cancel() {
      call.leave();
      // What waits for the engine comes to its end by the signal; nobody waits for it here.
      blocks.return().catch(() => {});
      end();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { ...HEADERS, "content-type": contentType } });
}

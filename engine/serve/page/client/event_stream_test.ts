// Expected events are those of the HTML standard, 9.2.6.

import { assertEquals } from "@std/assert";
import { serverEvents } from "./event_stream.ts";

function streamOf(
  chunks: readonly Uint8Array<ArrayBuffer>[],
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(chunks);
}

const TEXT =
  ": a comment\ndata: one\n\nevent: x\r\ndata:two\r\ndata: lines – ü\r\n\r\nid: 3\n\ndata\rdata:  [DONE]\r\rdata: cut";
// A field without a colon has the empty text, and the space behind a colon is dropped once.
const EVENTS = ["one", "two\nlines – ü", "\n [DONE]"];

Deno.test("serverEvents() gives the same wherever the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, i) => bytes.slice(i * size, (i + 1) * size),
    );
    assertEquals(
      await Array.fromAsync(serverEvents(streamOf(chunks))),
      EVENTS,
      `pieces of ${size}`,
    );
  }
});

Deno.test("serverEvents() cancels the stream when its reader leaves", async () => {
  let isCancelled = false;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => void (isCancelled = true),
  });
  for await (const _ of serverEvents(stream)) break;
  assertEquals(isCancelled, true);
});

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { readFixture } from "../../tests/support/fixtures.ts";
import { createAnswerStream } from "./answer/answer_stream.ts";
import { createStopFilter, type StopFilter } from "./stop_strings.ts";

interface StopCase {
  readonly name: string;
  readonly pieces?: readonly string[];
  readonly pieces_bytes?: readonly (readonly number[])[];
  readonly stop: readonly string[];
  readonly text: string;
  readonly finish_reason: string;
  readonly ends_with_eos: boolean;
}

/** Everything a filter shows for pieces, with a check that it never shows more than it may. */
function run(filter: StopFilter, pieces: readonly string[], allowed: string): string {
  let shown = "";
  for (const piece of pieces) {
    shown += filter.push(piece);
    assert(allowed.startsWith(shown), `shown too much: ${JSON.stringify(shown)}`);
  }
  return shown + filter.finish();
}

/** The definition, without any streaming: the first end of a stop text, the longest that ends there. */
function cutNaively(text: string, stops: readonly string[]): string {
  for (let end = 1; end <= text.length; end++) {
    const ending = stops.filter((stop) => stop !== "" && text.slice(0, end).endsWith(stop));
    if (ending.length > 0) return text.slice(0, end - Math.max(...ending.map((s) => s.length)));
  }
  return text;
}

const CASES: StopCase[] = JSON.parse(readFixture("public/pc-stop-01/expected.json")).cases;

for (const { name, pieces, pieces_bytes, stop, text, finish_reason, ends_with_eos } of CASES) {
  Deno.test(`stop texts as public reports want them: ${name}`, () => {
    if (pieces !== undefined) {
      const filter = createStopFilter(stop);
      assertEquals(run(filter, pieces, text), text);
      assertEquals(filter.stoppedBy !== undefined || ends_with_eos, finish_reason === "stop");
    }
    if (pieces_bytes !== undefined) {
      const utf8 = new TextDecoder();
      const decoder = {
        push: (id: number) => utf8.decode(Uint8Array.from(pieces_bytes[id]), { stream: true }),
        finish: () => utf8.decode(),
      };
      const stream = createAnswerStream({ decoder, stops: stop });
      const shown = { text: "" };
      pieces_bytes.forEach((_, id) => stream.push(id, shown));
      stream.finish(shown, true);
      assertEquals(shown.text, text);
      assertEquals(stream.stoppedBy, stop[0]);
    }
  });
}

Deno.test("a stop filter gives what the definition says for any pieces", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "<", "👋"), maxLength: 6 });
  fc.assert(
    fc.property(fc.array(letters, { maxLength: 12 }), fc.array(letters, { maxLength: 4 }), (
      pieces,
      stops,
    ) => {
      const wanted = cutNaively(pieces.join(""), stops);
      assertEquals(run(createStopFilter(stops), pieces, wanted), wanted);
    }),
    { seed: 3, numRuns: 2000 },
  );
});

Deno.test("after a stop nothing more is shown", () => {
  const filter = createStopFilter(["END"]);
  assertEquals(filter.push("xEND"), "x");
  assertEquals(filter.push("more"), "");
  assertEquals(filter.finish(), "");
  assertEquals(filter.stoppedBy, "END");
});

Deno.test("a long text with a hold-back at every step takes linear time", () => {
  const filter = createStopFilter(["a".repeat(2000) + "b"]);
  let shown = 0;
  for (let i = 0; i < 200_000; i++) shown += filter.push("a").length;
  assertEquals(shown, 198_000);
});

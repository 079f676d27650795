import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import type { Hyperparameters } from "./hparams.ts";
import { layerKinds } from "./layer_kinds.ts";
import type { ModelSpec } from "./spec.ts";

type Pattern = ModelSpec["attention"]["pattern"];

function kinds(pattern: Pattern, params: Partial<Hyperparameters>): string {
  const types = { full_attention: "full", sliding_attention: "sliding" };
  const spec = { attention: { pattern, types } } as unknown as ModelSpec;
  return layerKinds(spec, { params: { layers: 7, ...params } as Hyperparameters, file: "toy" })
    .map((kind) => kind[0]).join("");
}

const EVERY: Pattern = { rule: "every", period: "windowPeriod", kind: "full", others: "sliding" };
const FROM: Pattern = {
  rule: "from",
  when: "windowEnabled",
  start: "windowStart",
  kind: "sliding",
  others: "full",
};

Deno.test("patterns give the kind of each layer", () => {
  assertEquals(kinds({ rule: "uniform", kind: "full" }, {}), "fffffff");
  assertEquals(kinds(EVERY, { windowPeriod: 3 }), "ssfssfs");
  assertEquals(kinds(EVERY, { windowPeriod: 1 }), "fffffff");
  assertEquals(kinds(FROM, { windowEnabled: true, windowStart: 4 }), "ffffsss");
  assertEquals(kinds(FROM, { windowEnabled: false, windowStart: 4 }), "fffffff");
  assertEquals(
    kinds({ rule: "from", start: "windowStart", kind: "sliding", others: "full" }, {
      windowStart: 4,
    }),
    "ffffsss",
  );
});

Deno.test("a number that the pattern asks for and the file lacks is no number", () => {
  for (
    const [pattern, params, name] of [
      [EVERY, {}, "windowPeriod"],
      [FROM, { windowStart: 4 }, "windowEnabled"],
      [FROM, { windowEnabled: true }, "windowStart"],
    ] as const
  ) {
    const error = assertThrows(() => kinds(pattern, params), FormatError);
    assertMatch(error.message, new RegExp(`${name}: is missing`));
  }
});

Deno.test("a file's own list wins over the pattern", () => {
  const layerTypes = ["sliding_attention", "full_attention"];
  assertEquals(kinds(EVERY, { layers: 2, layerTypes, windowPeriod: 2 }), "sf");
  assertEquals(kinds(FROM, { layers: 2, layerTypes }), "sf");
});

Deno.test("a list of another length or with an unknown type is refused", () => {
  const short = assertThrows(() => kinds(EVERY, { layerTypes: ["full_attention"] }), FormatError);
  assertMatch(short.message, /lists 1 layers where the model has 7/);
  const unknown = assertThrows(
    () => kinds(EVERY, { layers: 1, layerTypes: ["chunked_attention"] }),
    UnsupportedError,
  );
  assertMatch(unknown.message, /type of layer 0: "chunked_attention" is not built/);
});

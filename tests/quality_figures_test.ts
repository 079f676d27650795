// The short form of `deno task bench quality backends`: the files as they are, eight short windows of a book. `fast` may be
// no further from `exact` than it was when the figures were stored, by more than their own spread.

import { assert, assertEquals } from "@std/assert";
import {
  distance,
  divergence,
  encodeOnnx,
  perplexityOf,
  predict,
  type Setting,
  type Spread,
} from "../bench/quality/backends.ts";
import { pullModel } from "../engine/formats/hub/pull.ts";
import { readFixture } from "./support/fixtures.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

// One window is one throw of the roundings: floats that are added in another order move its divergence by a third.
const TEXT = {
  tokens: 24,
  text: readFixture("text/opticks-book3.txt"),
  starts: [0, 2000, 5000, 8000, 11_000, 14_000, 17_000, 20_000],
};
const EXACT: Setting = { device: "wasm", precision: "exact" };
const FAST: Setting = { device: "wasm", precision: "fast" };

/** As `deno test` printed them when they were stored; all kinds of processors give the same integers. */
const STORED: Readonly<Record<string, Readonly<Record<string, Spread>>>> = {
  "smollm2-135m": {
    divergence: { value: 0.001248, spread: 0.0000873 },
    perplexity: { value: 169.548, spread: 0.6648 },
  },
  "gemma3-270m": {
    divergence: { value: 0.0009479, spread: 0.0000773 },
    perplexity: { value: 236.255, spread: 0.8213 },
  },
  "minilm-int8": { distance: { value: 0.0006512, spread: 0.0000201 } },
};

function hold(name: string, figures: Readonly<Record<string, Spread>>): void {
  assertEquals(Object.keys(figures), Object.keys(STORED[name]!));
  for (const [what, { value }] of Object.entries(figures)) {
    const before = STORED[name]![what]!;
    const most = before.value + before.spread;
    assert(value <= most, `${name}, ${what}: ${value}, it was ${before.value} ± ${before.spread}`);
  }
}

for (const name of ["smollm2-135m", "gemma3-270m"]) {
  testWith(
    [modelNeed(name)],
    `fast ${name} is no further from exact than it was`,
    async () => {
      const path = await pullModel(name);
      const exact = await predict(path, EXACT, TEXT), fast = await predict(path, FAST, TEXT);
      hold(name, {
        divergence: divergence(exact, fast),
        perplexity: perplexityOf(exact, fast),
      });
    },
  );
}

testWith(
  [modelNeed("minilm-int8")],
  "a fast ONNX encoder is no further from exact than it was",
  async () => {
    const path = await pullModel("minilm-int8");
    const exact = await encodeOnnx(path, EXACT), fast = await encodeOnnx(path, FAST);
    hold("minilm-int8", { distance: distance(exact, fast) });
  },
);

Deno.test("divergence and perplexity are those of the definitions", () => {
  const rows = (...all: number[][]) => all.map((row) => Float32Array.from(row, Math.log));
  const next = [1, 0];
  const from = { next, rows: rows([0.5, 0.5], [0.25, 0.75]) };
  const of = { next, rows: rows([0.25, 0.75], [0.25, 0.75]) };
  const kl = 0.5 * Math.log(2) + 0.5 * Math.log(2 / 3);
  const { value, spread } = divergence(from, of);
  assert(Math.abs(value - kl / 2) < 1e-6 && Math.abs(spread - kl / 2) < 1e-6);
  assert(Math.abs(perplexityOf(from, of).value - 1 / Math.sqrt(0.75 * 0.25)) < 1e-5);
});

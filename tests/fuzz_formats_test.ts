// A thousand mutations of good files for each reader, with a fixed seed; `deno task fuzz` runs more.

import fc from "fast-check";
import { fuzzGguf, fuzzSafetensors, ggufSeeds, safetensorsSeeds } from "./support/fuzz_formats.ts";
import { fuzzOnnx, onnxSeeds } from "./support/fuzz_onnx.ts";
import { fuzzPicture, pictureSeeds } from "./support/fuzz_pictures.ts";

/** A seed with some bytes overwritten, a stretch cut out, or its end cut off. */
function mutations(seeds: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 8 }),
      fc.constantFrom(
        new Uint8Array(8).fill(255),
        new Uint8Array(8),
        Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 64),
      ),
    ),
  });
  return fc.tuple(
    fc.constantFrom(...seeds),
    fc.array(edit, { maxLength: 4 }),
    fc.double({ min: 0, max: 2, noNaN: true }),
  ).map(([seed, edits, keep]) => {
    const out = seed.slice();
    for (const { at, bytes } of edits) {
      const place = Math.min(Math.floor(at * out.length), Math.max(0, out.length - bytes.length));
      out.set(bytes.subarray(0, out.length - place), place);
    }
    return keep < 1 ? out.subarray(0, Math.floor(keep * out.length)) : out;
  });
}

Deno.test("mutated GGUF files open with sound tensors or fail with a typed error", async () => {
  await fc.assert(fc.asyncProperty(mutations(ggufSeeds()), fuzzGguf), { seed: 3, numRuns: 1000 });
});

Deno.test("mutated safetensors files open with sound tensors or fail with a typed error", async () => {
  const files = mutations(safetensorsSeeds());
  await fc.assert(fc.asyncProperty(files, fuzzSafetensors), { seed: 3, numRuns: 1000 });
});

Deno.test("mutated ONNX files derive and run within bounds or fail with a typed error", async () => {
  const files = mutations(onnxSeeds());
  await fc.assert(fc.asyncProperty(files, fuzzOnnx), { seed: 3, numRuns: 1000 });
});

Deno.test("mutated pictures are read within their limit or fail with a typed error", async () => {
  const files = mutations(pictureSeeds());
  await fc.assert(fc.asyncProperty(files, fuzzPicture), { seed: 3, numRuns: 500 });
});

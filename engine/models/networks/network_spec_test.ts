import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { memorySource } from "../../io.ts";
import { openDevice } from "../../run/devices.ts";
import { filledIn, valueOf } from "./expression.ts";
import { firstOf, openNetwork } from "./network.ts";
import { readNetworkConfig } from "./network_config.ts";
import { type NetworkSpec, readNetworkSpec } from "./network_spec.ts";
import { chooseNetworkSpec } from "./specs/mod.ts";

const SMALL = {
  name: "small",
  classes: ["Small"],
  defaults: { width: 2, layers: 3 },
  only: { act_fn: [null, "silu"] },
  harmless: ["sample_size"],
  blocks: {
    layer: {
      takes: ["x"],
      sizes: ["to"],
      steps: [{ do: "linear", at: "proj", to: "to" }, { do: "add", of: ["x", 1] }],
      gives: ["x"],
    },
  },
  networks: {
    main: {
      inputs: { sample: ["batch", "width"] },
      steps: [
        { do: "add", of: ["sample", 0], as: ["+kept"] },
        { do: "add", of: ["sample", 0] },
        {
          each: "i",
          count: "layers",
          steps: [{ if: "i > 0", steps: [{ do: "layer", at: "layers.{i - 1}", to: "width" }] }],
        },
        { do: "add", of: ["x", "-kept"] },
      ],
      outputs: { y: "x" },
    },
  },
} as const;

type Json = Record<string, unknown>;

/** The spec with one value another. */
function changed(change: (json: Json) => void): () => NetworkSpec {
  const json = structuredClone(SMALL) as unknown as Json;
  change(json);
  return () => readNetworkSpec(json, "small.json");
}

function tensor(name: string, shape: readonly number[], values: readonly number[]): TensorInfo {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  const source = memorySource(name, bytes);
  return { name, shape, format: "F32", source, offset: 0, byteLength: bytes.length };
}

Deno.test("a network does what its steps say: loops, conditions, blocks, piles, numbers", async () => {
  const spec = readNetworkSpec(SMALL, "small.json");
  const { names } = readNetworkConfig(spec, { given: {}, file: "config.json" });
  const tensors = new Map(
    [
      tensor("layers.0.proj.weight", [2, 2], [1, 2, 3, 4]),
      tensor("layers.1.proj.weight", [2, 2], [0, 1, 1, 0]),
    ].map((one) => [one.name, one]),
  );
  const device = await openDevice("reference", {});
  const file = { spec, names, tensors, file: "small", warnings: [] };
  using network = openNetwork(file, { device, network: "main" });
  const sample = { data: Float32Array.of(1, 10), dims: [1, 2] };
  // [1, 10] → [21, 43] + 1 → [44, 22] + 1, and what was kept.
  assertEquals([...firstOf(await network.run({ sample }))], [45 + 1, 23 + 10]);
  assertThrows(
    () => readNetworkConfig(spec, { given: { act_fn: "mish" }, file: "config.json" }),
    UnsupportedError,
    'config.json, act_fn: "mish" is not built: known are null, "silu"',
  );
  const { warnings } = readNetworkConfig(spec, {
    given: { sample_size: 3, _note: 1, odd: 2, off: false },
    file: "config.json",
  });
  assertEquals(warnings, ["config.json: nobody knows what these keys mean: odd"]);
});

Deno.test("a spec is refused by the place where it is wrong", () => {
  const steps = (json: Json) => (json.networks as { main: { steps: Json[] } }).main.steps;
  const wrong: [(json: Json) => void, string][] = [
    [(json) => json.colour = 1, "colour: is not a known key"],
    [(json) => delete json.blocks, "blocks: is missing"],
    [(json) => steps(json)[0]!.do = "conf", "main, conf: is neither an atom nor a block"],
    [(json) => steps(json)[0]!.axis = 1, 'main, add: has no "axis"'],
    [(json) => steps(json)[0]!.of = ["sample"], "main, add: is given 1 values"],
    [(json) => steps(json)[0]!.as = 3, "steps[0].as: must be a string, and is 3"],
    [(json) => steps(json)[2] = { each: "i", steps: [] }, "steps[2].count: is missing"],
  ];
  for (const [change, message] of wrong) {
    assertThrows(changed(change), FormatError, message);
  }
  assertThrows(
    () => chooseNetworkSpec({ _class_name: "FluxTransformer2DModel" }, "config.json"),
    UnsupportedError,
    'network "FluxTransformer2DModel" is not built',
  );
});

Deno.test("sizes are expressions over the keys of a config", () => {
  const names = { widths: [8, 16], i: 1, kind: "CrossAttnDown", scale: 0.5 };
  const at = { names, place: "here" };
  assertEquals(valueOf("widths[i] // 2", at), 8);
  assertEquals(valueOf("[i - 1, 0] | max", at), 0);
  assertEquals(valueOf("'Cross' in kind and widths | length == 2", at), true);
  assertEquals(valueOf("[i, 2 * i]", at), [1, 2]);
  assertAlmostEquals(valueOf("scale * 3", at) as number, 1.5, 1e-12);
  assertEquals(filledIn("a.{i + 1}.b", at), "a.2.b");
  assertThrows(() => valueOf("depth + 1", at), FormatError, "here: cannot be computed from");
  assertThrows(() => valueOf("widths[", at), FormatError, "here: cannot be computed from");
});

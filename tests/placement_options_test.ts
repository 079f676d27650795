// Options of load() about several devices: the same logits and tokens wherever layers, ops, embeddings and caches are; budgets
// and what does not go together are refused before a weight is read.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { closing } from "../engine/byte_source.ts";
import { DeviceError, ResourceError } from "../engine/errors.ts";
import type { LoadOptions } from "../engine/decode/model.ts";
import { load } from "../engine/models/load.ts";
import { openForReading } from "../engine/models/open_source.ts";
import { prepareModel } from "../engine/models/prepare.ts";
import { embed } from "../engine/pipelines/embed.ts";
import { resolvePlacement } from "../engine/place/open_placement.ts";
import { reportPlacement } from "../engine/place/report.ts";
import { pagesFor } from "../engine/run/pages/groups.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { gpuTest } from "./support/gpu.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

const MODEL = checkpointPath("llama");
const OPTIONS = { precision: "exact", contextLength: 32, threads: 1 } as const;
const PROMPT = [3, 1, 4, 1, 5, 9];

interface Answer {
  readonly logits: readonly number[];
  readonly tokens: readonly number[];
  readonly notes: readonly string[];
}

async function answerWith(options: LoadOptions): Promise<Answer> {
  using model = await load(MODEL, { ...OPTIONS, ...options });
  using session = model.createSession();
  await session.eval(PROMPT);
  const logits = [...session.logits()], tokens: number[] = [];
  for (let i = 0; i < 4; i++) {
    const row = session.logits();
    tokens.push(row.indexOf(row.reduce((most, value) => Math.max(most, value))));
    await session.eval([tokens.at(-1)!]);
  }
  return { logits, tokens, notes: model.notes };
}

async function checkSame(options: LoadOptions, expected: Answer): Promise<Answer> {
  const actual = await answerWith(options);
  const off = Math.max(...expected.logits.map((value, i) => Math.abs(value - actual.logits[i]!)));
  assert(off <= 1e-3, `${JSON.stringify(options)}: off by ${off}`);
  assertEquals(actual.tokens, expected.tokens, JSON.stringify(options));
  return actual;
}

Deno.test("two and four devices in each strategy give the logits of one", async () => {
  const expected = await answerWith({ device: "reference" });
  for (
    const placement of ["cpu", "0;1", "0&1", "wasm;reference", "wasm&reference", "wasm=2;wasm1"]
  ) {
    await checkSame({ placement, device: "wasm" }, expected);
  }
  const devices = ["wasm", "reference", "wasm", "reference"];
  await checkSame({ placement: "0&1;2&3", devices }, expected);
  const place = { "*": 0, "layers.1": ["wasm", 1], "op:embed": 1 };
  await checkSame({ placement: { devices: ["wasm", "reference"], place } }, expected);
});

gpuTest("layers, ops, embeddings and caches on CPU and GPU give the logits of one", async () => {
  const expected = await answerWith({ device: "reference" });
  const all: readonly LoadOptions[] = [
    ...[0, 1, 2].map((gpuLayers) => ({ gpuLayers })),
    { placement: "gpu=1;wasm" },
    { placement: "wasm&gpu" },
    { placement: "llamaf" },
    { placement: "gpu" },
    { placement: "gpu", hostEmbeddings: true, hostKvPercent: 50 },
    { placement: "gpu", hostKvPercent: 100 },
  ];
  for (const options of all) await checkSame(options, expected);
});

gpuTest(
  "auto takes as many layers as fit and says why; too small budgets name the nearest",
  async () => {
    const expected = await answerWith({ device: "reference" });
    const budget = { device: "gpu", sessions: 1, batch: 8 } as const;
    const whole = await checkSame(
      { ...budget, placement: "auto", maxDeviceBytes: 2 ** 24 },
      expected,
    );
    assertStringIncludes(whole.notes.join("\n"), "placement auto: 2 of 2 layers on the GPU");
    const error = await assertRejects(
      () => answerWith({ ...budget, gpuLayers: 2, maxDeviceBytes: 60_000 }),
      ResourceError,
      "The nearest that fits is gpuLayers",
    );
    const nearest = Number(/gpuLayers (\d)$/.exec(error.message)![1]);
    assert(nearest < 2);
    const part = await checkSame(
      { ...budget, placement: "auto", maxDeviceBytes: 60_000 },
      expected,
    );
    assertStringIncludes(part.notes.join("\n"), `${nearest} of 2 layers on the GPU`);
    await assertRejects(
      () => answerWith({ ...budget, placement: "wasm;gpu", maxDeviceBytes: 1000 }),
      ResourceError,
      "With maxDeviceBytes",
    );
  },
);

const ENCODERS = ["bert", "distilbert", "mpnet", "roberta"];
const TRANSLATORS = ["m2m100", "t5"];

/** What a model without a cache, or with a source, gives: vectors of an encoder, logits of an encoder-decoder. */
async function rowsOf(name: string, options: LoadOptions): Promise<readonly Float32Array[]> {
  using model = await load(checkpointPath(name), { ...OPTIONS, ...options });
  if (!TRANSLATORS.includes(name)) return await embed(model, [[1, ...PROMPT, 2], [1, 30, 2]]);
  using session = model.createSession();
  await session.encode([...PROMPT, 2]);
  await session.eval([2, 7]);
  return [session.logits().slice()];
}

async function checkEncoders(all: readonly LoadOptions[]): Promise<void> {
  for (const name of [...ENCODERS, ...TRANSLATORS]) {
    const expected = await rowsOf(name, { device: "reference" });
    for (const options of all) {
      const rows = await rowsOf(name, options);
      const off = rows.map((row, i) =>
        Math.max(...row.map((x, j) => Math.abs(x - expected[i]![j]!)))
      );
      assert(Math.max(...off) <= 1e-3, `${name}, ${JSON.stringify(options)}: off by ${off}`);
    }
  }
}

Deno.test("layers of encoders, and of what has one, are placed like those of decoders", async () => {
  await checkEncoders([
    { placement: "wasm=1;reference" },
    { placement: "0;1", devices: ["reference", "wasm"] },
    { placement: "wasm;reference", hostEmbeddings: true },
    // Keys of a source could be stored long before they are looked at.
    { placement: { devices: ["wasm", "reference"], place: { "*": 0, "op:matmul": 1 } } },
  ]);
  await assertRejects(
    () => rowsOf("bert", { placement: "wasm;reference", hostKvPercent: 50 }),
    RangeError,
    "Cannot use hostKvPercent 50: the model keeps no keys and values",
  );
});

gpuTest("encoders have layers on CPU and GPU", async () => {
  await checkEncoders([{ gpuLayers: 1 }, { placement: "gpu=1;wasm" }, { placement: "llamaf" }]);
});

Deno.test("what is wrong with a placement is said before a weight is read", async () => {
  for (
    const [options, kind, message] of [
      [{ placement: "0&1;2" }, RangeError, "as many devices each"],
      [{ placement: "0&1&2", device: "wasm" }, Error, "cannot be split over 3 devices"],
      [{ placement: "0;1;2", device: "wasm" }, RangeError, "Cannot place 2 layers on 3 groups"],
      [{ placement: "0;3", devices: ["wasm"] }, RangeError, "device 3: it is not there"],
      [{ placement: "gpu7;wasm" }, DeviceError, "device gpu7 is not there"],
      [{ placement: "wasm;cuda" }, RangeError, 'device "cuda"'],
      [
        { placement: { devices: ["wasm"], place: { "layers.0": 0 } } },
        RangeError,
        "layer 1 is on no device",
      ],
      [{ placement: "0;1", gpuLayers: 1 }, RangeError, "gpuLayers beside placement"],
      [{ gpuLayers: 3 }, RangeError, "the model has 2 layers"],
      [{ gpuLayers: 1, device: "wasm" }, RangeError, 'gpuLayers 1 with device "wasm"'],
      [
        { placement: "cpu", maxHostBytes: 2 ** 20, batch: 32, cacheTokens: 2 ** 14 },
        ResourceError,
        "maxHostBytes is 1048576",
      ],
      [{ hostKvPercent: 101 }, RangeError, "hostKvPercent"],
    ] as const
  ) {
    await assertRejects(() => answerWith(options as LoadOptions), kind, message);
  }
});

Deno.test("troodon plan says what lies where and what a token moves", async () => {
  const args = ["plan", MODEL, "--placement", "wasm&wasm1", "--context", "32"];
  const { code, out } = await troodon([...args, "--json"]);
  assertEquals(code, 0);
  const [report] = JSON.parse(out);
  assertEquals([report.allReduces, report.devices.length], [4, 2]);
  // Of each device four parts of a sum out and four sums in, 4 bytes a channel, besides what follows them.
  const { movedBytes, layers, weights } = report.devices[1];
  assertEquals([layers, movedBytes % 4], [[0, 1], 0]);
  assert(weights > 0 && weights <= report.devices[0].weights);
  assert(report.expected.one > 0);
  assertStringIncludes((await troodon(args)).out, "4 all-reduces");
  const far = await troodon(["plan", MODEL, "--placement", "gpu98;gpu99", "--context", "32"]);
  assertStringIncludes(far.out, "not known, because this machine does not have gpu98, gpu99");
  const info = await troodon(["info", MODEL, "--placement", "wasm;wasm1"]);
  assertRefused(info, 2, /troodon plan MODEL --placement P shows it on several/);
});

Deno.test("devices on the same hardware wait for each other in an estimate", async () => {
  const file = await openForReading(MODEL, {});
  using _file = closing(file);
  const none = () => false;
  const { plan } = await prepareModel(file, {
    ...{ options: {}, kernels: { hasKernel: none, takes: none, fusesNeighbours: false } },
  });
  const sizes = { slots: 1, pages: pagesFor(plan, { slots: 1, tokens: 64 }) };
  const expectedOn = async (placement: string, hardware: readonly string[]) => {
    const { devices, cut } = await resolvePlacement(plan, { placement, sizes });
    const bandwidths = hardware.map((hardware) => ({ hardware, read: 1e9, link: 1e9, latency: 0 }));
    return reportPlacement(plan, { cut, names: devices, sizes, bandwidths }).expected!;
  };
  for (const placement of ["wasm;wasm1", "wasm&wasm1"]) {
    const shared = await expectedOn(placement, ["cpu", "cpu"]);
    const apart = await expectedOn(placement, ["cpu", "gpu"]);
    assertAlmostEquals(shared.many, shared.one, shared.one * 1e-6);
    assert(apart.many > 1.2 * shared.many);
    // Layers follow each other wherever they are, halves of them are computed side by side.
    const isFaster = apart.one > 1.2 * shared.one;
    assertEquals(isFaster, placement.includes("&"));
  }
});

// `troodon tune`: what is measured, kept, shared and used. Times are given here, so that no clock decides.

import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError } from "../engine/errors.ts";
import { plan } from "../engine/plan/planner.ts";
import type { Backend } from "../engine/run/backend.ts";
import { caseGraph } from "../engine/run/case_graph.ts";
import { openDevice } from "../engine/run/devices.ts";
import { chooseKernel, tuningKey } from "../engine/run/kernel_choice.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { tuneCases } from "../engine/run/tuning/cases.ts";
import { openTunedDevice } from "../engine/run/tuning/devices.ts";
import { measure, type Measured, tuningOf } from "../engine/run/tuning/measure.ts";
import { parseTunings, showTunings, type Tunings } from "../engine/run/tuning/table.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { gpuTest } from "./support/gpu.ts";

const PLANES = {},
  TEXTURES = {
    conv: { source: "texture_2d", weights: "texture_2d", target: "planes" },
  } as const;

function measured(key: string, times: Readonly<Record<string, number | string>>): Measured {
  const variants = Object.entries(times).map(([kernel, ms]) =>
    typeof ms === "number" ? { kernel, ms } : { kernel, problem: ms }
  );
  return { op: "conv", case: key, key, variants };
}

Deno.test("another kernel is taken where it is faster by a tenth, a wrong one nowhere", () => {
  const found = [
    measured("close", { first: 10, second: 9.5 }),
    measured("clear", { first: 10, second: 9.8, third: 5 }),
    measured("first is best", { first: 1, second: 9 }),
    measured("failed", { first: "no memory", second: 3, third: 2.9 }),
  ];
  assertEquals(tuningOf(found), { prefer: { clear: "third" }, excluded: ["first"] });
  const before = { prefer: { clear: "second", other: "own" }, excluded: ["third", "old"] };
  assertEquals(tuningOf(found.slice(0, 2), { before }), {
    prefer: { other: "own", clear: "third" },
    excluded: ["old"],
  });
});

Deno.test("one good run of another kernel is not enough, and cold runs do not count", async () => {
  const own = measured("key", { first: 10, second: 5 });
  const slow = own.variants.map((variant, i) => ({ ...variant, median: [10, 9.5][i]! }));
  assertEquals(tuningOf([{ ...own, variants: slow }]).prefer, {});
  const steady = own.variants.map((variant, i) => ({ ...variant, median: [12, 6][i]! }));
  assertEquals(tuningOf([{ ...own, variants: steady }]).prefer, { key: "second" });
  const [one] = tuneCases().filter(({ op }) => op === "conv_transpose");
  const reference = createReferenceBackend();
  let runs = 0;
  const backend: Backend = {
    ...reference,
    async prepare(made, { forceKernels: _, ...options }) {
      const prepared = await reference.prepare(made, options);
      return { ...prepared, run: (...args) => (runs++, prepared.run(...args)) };
    },
  };
  const device = { backend, able: () => ["first", "second"] };
  await Array.fromAsync(measure(device, { cases: [one!], rounds: 2 }));
  assertEquals(runs, 2 * (1 + 5 + 2)); // compared with the reference, made warm, measured
});

Deno.test("storages change where all convolutions together gain, and none fails", () => {
  const one = (own: number, textures: number | string): Measured => ({
    ...measured("conv", { first: own }),
    variants: [
      { kernel: "first", ms: own },
      {
        ...{ kernel: "gpu_conv_virtual_f32", storages: TEXTURES },
        ...typeof textures === "number" ? { ms: textures } : { problem: textures },
      },
    ],
  });
  const storages = [PLANES, TEXTURES];
  const chosen = (...found: Measured[]) => tuningOf(found, { storages }).storages;
  assertEquals(chosen(one(10, 12), one(30, 10)), TEXTURES);
  assertEquals(chosen(one(10, 12), one(30, 27)), undefined);
  assertEquals(chosen(one(10, 1), one(30, "refused")), undefined);
});

Deno.test("a variant that is wrong or throws is found, and the others are measured", async () => {
  const [one] = tuneCases().filter(({ op }) => op === "conv_transpose");
  const reference = createReferenceBackend();
  const backend: Backend = {
    ...reference,
    async prepare(made, { forceKernels = {}, ...options }) {
      const [kernel] = Object.values(forceKernels);
      if (kernel === "refused") throw new TypeError("refused by the driver");
      const prepared = await reference.prepare(made, options);
      if (kernel !== "wrong") return prepared;
      return {
        ...prepared,
        output: (name) => (prepared.output(name) as Float32Array).map((x) => -x),
      };
    },
  };
  const device = { backend, able: () => ["right", "wrong", "refused"] };
  const [found] = await Array.fromAsync(measure(device, { cases: [one!], rounds: 1 }));
  const [right, wrong, refused] = found!.variants;
  assert(Number.isFinite(right!.ms), "measured");
  assertMatch(wrong!.problem!, /expected/);
  assertEquals(refused!.problem, "refused by the driver");
  assertEquals(tuningOf([found!]).excluded, ["wrong", "refused"]);
});

Deno.test("a preferred kernel is taken if it takes the node, is not excluded and none is forced", () => {
  const [{ op, opCase }] = tuneCases() as [ReturnType<typeof tuneCases>[0]];
  const node = caseGraph(op, opCase).nodes[0]!;
  const kernel = (name: string, takes = true) => ({ name, when: () => takes });
  const table = { conv: [kernel("a"), kernel("no", false), kernel("b"), kernel("c")] };
  const key = tuningKey(node, [kernel("a"), kernel("b"), kernel("c")]);
  const preferKernels = { [key]: "c" };
  const chosen = (wish: Parameters<typeof chooseKernel>[2]) =>
    chooseKernel(table, { node }, wish)?.name;
  assertEquals(chosen({}), "a");
  assertEquals(chosen({ preferKernels }), "c");
  assertEquals(chosen({ preferKernels: { [key]: "no" } }), "a");
  assertEquals(chosen({ preferKernels, forceKernels: { [node.name]: "b" } }), "b");
  // Without one of them it is another choice, which was not measured.
  assertEquals(chosen({ preferKernels, excludeKernels: new Set(["c"]) }), "a");
});

Deno.test("a file that is no table is refused by what is wrong with it", () => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ["{", /no JSON/],
    ["[]", /no object/],
    ['{"x": 1}', /x is no object/],
    ['{"x": {"prefer": {"k": 1}, "excluded": []}}', /prefer of x/],
    ['{"x": {"prefer": {}, "excluded": "all"}}', /excluded of x/],
    ['{"x": {"prefer": {}, "excluded": [], "more": 1}}', /x has a more/],
    [
      '{"x": {"prefer": {}, "excluded": [], "storages": {"conv": {"source": "tape"}}}}',
      /no source tape/,
    ],
  ];
  for (const [text, message] of wrong) {
    assertMatch(assertThrows(() => parseTunings(text, "t.json"), FormatError).message, message);
  }
  const table = { x: { prefer: { k: "a" }, excluded: ["b"], storages: TEXTURES } };
  assertEquals(parseTunings(showTunings(table), "t.json"), table);
});

/** Writes tables to a cache folder. */
async function withTables(
  tables: Tunings,
  use: (cacheDir: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/tuning.json`, showTunings(tables));
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function usedOn(device: "wasm" | "gpu", options: { cacheDir: string }): Promise<string> {
  const [{ op, opCase }] = tuneCases().filter(({ op }) => op === "conv_transpose") as [
    ReturnType<typeof tuneCases>[0],
  ];
  const { backend } = await openDevice(device, { ...options, threads: 1 });
  const prepared = await backend.prepare(plan(caseGraph(op, opCase), { limits: {} }), { slots: 0 });
  const [kernel] = prepared.kernels!;
  prepared.dispose();
  return kernel!;
}

Deno.test("plans on WASM take what the table prefers", async () => {
  const { name, able } = await openTunedDevice("wasm", { threads: 1 });
  const [{ op, opCase }] = tuneCases().filter(({ op }) => op === "conv_transpose") as [
    ReturnType<typeof tuneCases>[0],
  ];
  const node = caseGraph(op, opCase).nodes[0]!;
  const names = able(node), key = tuningKey(node, names.map((name) => ({ name })));
  assertEquals(names, ["conv_patches_f32", "conv_transpose_f32"]);
  const table = { prefer: { [key]: names[1]! }, excluded: [] };
  await withTables(
    {},
    async (cacheDir) => assertEquals(await usedOn("wasm", { cacheDir }), names[0]),
  );
  await withTables(
    { [name]: table },
    async (cacheDir) => assertEquals(await usedOn("wasm", { cacheDir }), names[1]),
  );
  await withTables(
    { [name]: { prefer: {}, excluded: [names[0]!] } },
    async (cacheDir) => assertEquals(await usedOn("wasm", { cacheDir }), names[1]),
  );
  await withTables(
    { "another machine": table },
    async (cacheDir) => assertEquals(await usedOn("wasm", { cacheDir }), names[0]),
  );
});

gpuTest("plans on the GPU keep tensors where the table says", async () => {
  const { name } = await openTunedDevice("gpu");
  const [{ op, opCase }] = tuneCases() as [ReturnType<typeof tuneCases>[0]];
  const made = plan(caseGraph(op, opCase), { limits: {} });
  for (
    const [storages, kernel] of [
      [PLANES, "gpu_conv_gemm_f32"],
      [TEXTURES, "gpu_conv_virtual_f32"],
    ] as const
  ) {
    await withTables({ [name]: { prefer: {}, excluded: [], storages } }, async (cacheDir) => {
      const { backend } = await openDevice("gpu", { cacheDir });
      const prepared = await backend.prepare(made, { slots: 0 });
      assertEquals([...prepared.kernels!], [kernel]);
      prepared.dispose();
    });
  }
});

Deno.test("the command measures, keeps, exports and imports", async () => {
  const folder = await Deno.makeTempDir();
  const cache = ["--cache-dir", `${folder}/cache`], file = `${folder}/table.json`;
  try {
    assertRefused(
      await troodon(["tune", "--export", file, ...cache]),
      2,
      /no table yet: run troodon tune first/,
    );
    assertRefused(
      await troodon(["tune", "--only", "tea", ...cache]),
      2,
      /nothing to measure of tea: give one of conv/,
    );
    const measuring = ["tune", "--device", "wasm", "--only", "conv_transpose", "--rounds", "5"];
    const json = await troodon([...measuring, ...cache, "--threads", "1", "--json"]);
    assertEquals(json.code, 0, json.err);
    const { reports: [{ device, measured }], path } = JSON.parse(json.out);
    assertEquals(measured.length, 1);
    const none = await troodon(["tune", "--device", "wasm", "--only", "attention", ...cache]);
    assertEquals(none.code, 0, none.err);
    assertMatch(
      none.out,
      /^wasm.*\nnothing was measured: these nodes have one kernel each on it\n$/,
    );
    const tables = await Deno.readTextFile(path);
    assertEquals(Object.keys(JSON.parse(tables)), [device]);
    assertEquals((await troodon(["tune", "--export", file, ...cache])).code, 0);
    assertEquals(await Deno.readTextFile(file), tables);
    const other = ["--cache-dir", `${folder}/other`];
    assertMatch((await troodon(["tune", "--import", file, ...other])).out, /keeping the tables of/);
    assertEquals(await Deno.readTextFile(`${folder}/other/tuning.json`), tables);
    await Deno.writeTextFile(file, "{");
    assertRefused(await troodon(["tune", "--import", file, ...other]), 1, /no JSON/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

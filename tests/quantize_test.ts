// Files that `quantize` writes: that they hold what the formats say, open again, compute, and that a
// failure leaves nothing behind.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertLess,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { FormatError, SourceError, UnsupportedError } from "../engine/errors.ts";
import { createCaseRandom } from "../engine/ops/case_random.ts";
import { openModel } from "../engine/models/open_model.ts";
import { openSafetensors } from "../engine/formats/safetensors/safetensors.ts";
import { POLICY_KEY } from "../engine/formats/stored_formats.ts";
import { createSafetensorsHead } from "../engine/formats/safetensors/write.ts";
import { listPartials, memorySource } from "../engine/io.ts";
import { load } from "../engine/models/load.ts";
import { describeFormats } from "../engine/quantize/describe_policy.ts";
import { fileError, policyError } from "../engine/quantize/quant_error.ts";
import { quantizeModel, type QuantizeModelOptions } from "../engine/quantize/quantize.ts";
import { formatBytes, getFormat } from "../quant/mod.ts";
import { getPolicy } from "../quant/policies.ts";
import { parsePolicy } from "../engine/quantize/policy_file.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { valuesOf } from "./support/read_values.ts";
import { f32Bytes, writeGguf, writeSafetensors } from "./support/write_gguf.ts";

const FOLDER = fixturePath("models/llama");

async function quantizeTo(
  input: string,
  output: string,
  format: string,
  options: QuantizeModelOptions = {},
): ReturnType<typeof quantizeModel> {
  const file = await openModel(input);
  try {
    return await quantizeModel(file, { path: output, policy: getPolicy(format) }, options);
  } finally {
    file.close();
  }
}

async function logitsOf(path: string, device: "reference" | "wasm"): Promise<Float32Array> {
  using model = await load(path, { device, precision: "exact" });
  using session = model.createSession();
  await session.eval([1, 5, 9, 30, 7]);
  return session.logits().slice();
}

/** Ending of the file, format of the attention's matrices, and of those of the feed-forward's end. */
const FORMATS: Readonly<Record<string, readonly [string, string, string]>> = {
  q4_0: ["gguf", "Q4_0", "Q4_0"],
  q5_1: ["gguf", "Q5_1", "Q5_1"],
  f16: ["gguf", "F16", "F16"],
  bf16: ["gguf", "BF16", "BF16"],
  q4_k_m: ["gguf", "Q5_0", "Q8_0"],
  q6_k: ["gguf", "Q8_0", "Q8_0"],
  "8/4/4": ["safetensors", "I8PC_32", "I4PC_64"],
  q8: ["safetensors", "I8PC_32", "I8PC_64"],
  q8_gl: ["safetensors", "Q8_GL_32", "Q8_GL_64"],
  q8_log: ["safetensors", "Q8_LOG", "Q8_LOG"],
  e0m4_g32: ["safetensors", "E0M4_G32", "E0M4_G32"],
  int4_g32: ["safetensors", "INT4_G32", "INT4_G32"],
  q3h: ["safetensors", "F16", "Q3H_B64T1"],
  q2: ["safetensors", "Q2_B32T1B", "Q2_B32T1B"],
};

for (const [format, [ending, attention, down]] of Object.entries(FORMATS)) {
  Deno.test(`a model quantised to ${format} holds what the format says, and computes`, async () => {
    await withFolder(async (folder) => {
      const path = `${folder}/new.${ending}`;
      const { bytes, tensors } = await quantizeTo(TINY_LLAMA, path, format);
      assertEquals((await Deno.stat(path)).size, bytes);
      assertEquals([...Deno.readDirSync(folder)].length, 1);
      const [before, after] = [await openModel(TINY_LLAMA), await openModel(path)];
      try {
        assertEquals(after.kind, "gguf");
        assertEquals([...after.tensors.keys()], [...before.tensors.keys()]);
        assertEquals(after.tensors.get("blk.0.attn_q.weight")!.format, attention);
        assertEquals(after.tensors.get("blk.1.ffn_down.weight")!.format, down);
        for (const { name, to, error } of tensors) {
          const [old, fresh] = [await valuesOf(before, name), await valuesOf(after, name)];
          const expected = new Float32Array(old.length);
          const blocks = new Uint8Array(formatBytes(getFormat(to), old.length));
          getFormat(to).encode!(old, blocks);
          getFormat(to).decode(blocks, expected);
          assertEquals(fresh, expected, name);
          if (error) assertLess(error.relative, .4);
        }
        for (const [key, value] of before.metadata) {
          if (key !== "general.file_type") assertEquals(after.metadata.get(key), value, key);
        }
      } finally {
        before.close();
        after.close();
      }
      const [reference, wasm] = [await logitsOf(path, "reference"), await logitsOf(path, "wasm")];
      reference.forEach((value, i) => assertAlmostEquals(wasm[i]!, value, 1e-3));
    });
  });
}

Deno.test("the error that is reported is that of the new file", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/new.safetensors`;
    const { tensors } = await quantizeTo(TINY_LLAMA, path, "e0m4_g32");
    const [before, after] = [await openModel(TINY_LLAMA), await openModel(path)];
    try {
      const found = await fileError(before, after);
      const tried = await policyError(before, getPolicy("e0m4_g32"));
      assertEquals(found, tried);
      assertEquals(found.bits, 5);
      for (const { name, shape: _, format: __, insteadOf, bits: ___, ...error } of found.tensors) {
        const stored = tensors.find((tensor) => tensor.name === name)!;
        assertEquals([stored.error, stored.insteadOf], [error, insteadOf]);
      }
      assertLess(found.total.mean, found.total.max);
    } finally {
      before.close();
      after.close();
    }
  });
});

Deno.test("rows that do not fill a block are named", async () => {
  await withFolder(async (folder) => {
    const { tensors } = await quantizeTo(TINY_LLAMA, `${folder}/a.safetensors`, "q3h");
    const kept = tensors.filter(({ insteadOf }) => insteadOf !== undefined);
    assertEquals(kept.length, 13);
    assert(kept.every(({ to, insteadOf }) => to === "F16" && insteadOf === "Q3H"));
  });
});

Deno.test("a Hugging Face folder becomes a folder with its texts", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/new`;
    const { container } = await quantizeTo(FOLDER, path, "i8pc");
    assertEquals(container, "folder");
    assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["new"]);
    assertEquals(
      await Deno.readTextFile(`${path}/config.json`),
      await Deno.readTextFile(`${FOLDER}/config.json`),
    );
    const [old, fresh] = [await logitsOf(FOLDER, "reference"), await logitsOf(path, "wasm")];
    const largest = Math.max(...old.map(Math.abs));
    old.forEach((value, i) => assertAlmostEquals(fresh[i]!, value, .05 * largest));
  });
});

Deno.test("a quantised file can be quantised again", async () => {
  await withFolder(async (folder) => {
    await quantizeTo(TINY_LLAMA, `${folder}/a.safetensors`, "int4_g32");
    await quantizeTo(`${folder}/a.safetensors`, `${folder}/b.gguf`, "q8_0");
    await quantizeTo(`${folder}/a.safetensors`, `${folder}/c.safetensors`, "i4pc");
    const [first, second] = await Promise.all(
      ["a.safetensors", "b.gguf"].map((name) => openModel(`${folder}/${name}`)),
    );
    const { total } = await fileError(first!, second!);
    assertLess(total.relative, .01);
    // The mixture of a GGUF file is stated where it has a number.
    assertEquals(second!.metadata.size, first!.metadata.size + 1);
    first!.close();
    second!.close();
    assert((await logitsOf(`${folder}/c.safetensors`, "wasm")).every(Number.isFinite));
  });
});

Deno.test("nothing is overwritten, and an ending that is not the container's is refused", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/a.gguf`;
    await Deno.writeTextFile(path, "mine");
    await assertRejects(() => quantizeTo(TINY_LLAMA, path, "q8_0"), SourceError, "exists already");
    assertEquals(await Deno.readTextFile(path), "mine");
    await assertRejects(() => quantizeTo(FOLDER, folder, "q8_0"), SourceError, "exists already");
    const wrong = `${folder}/b.gguf`;
    await assertRejects(
      () => quantizeTo(TINY_LLAMA, wrong, "e0m4_g32"),
      RangeError,
      ".safetensors",
    );
    await assertRejects(() => quantizeTo(FOLDER, wrong, "q8_0"), RangeError, "without ending");
    const missing = `${folder}/none/b.gguf`;
    await assertRejects(
      () => quantizeTo(TINY_LLAMA, missing, "f16"),
      SourceError,
      "there is no folder",
    );
    assertEquals([...Deno.readDirSync(folder)].length, 1);
  });
});

function damaged(values: readonly number[]): Uint8Array<ArrayBuffer> {
  return writeGguf({ "general.architecture": ["string", "llama"] }, [
    { name: "blk.0.ffn_up.weight", dims: [32, 2], type: 0, data: f32Bytes(values) },
  ]);
}

Deno.test("weights that are not finite are refused with tensor and index, or saturated", async () => {
  await withFolder(async (folder) => {
    const values = Array.from({ length: 64 }, (_, i) => i / 64);
    values[40] = NaN;
    values[41] = -Infinity;
    await Deno.writeFile(`${folder}/bad.gguf`, damaged(values));
    const out = `${folder}/out.gguf`;
    await assertRejects(
      () => quantizeTo(`${folder}/bad.gguf`, out, "q8_0"),
      FormatError,
      'tensor "blk.0.ffn_up.weight": value 40 is NaN',
    );
    assertEquals([...Deno.readDirSync(folder)].length, 1);
    const { tensors } = await quantizeTo(`${folder}/bad.gguf`, out, "f16", { saturate: true });
    assertEquals(tensors[0]!.saturated, 2);
    const file = await openModel(out);
    const stored = await valuesOf(file, "blk.0.ffn_up.weight");
    file.close();
    assertEquals([...stored.subarray(39, 42)], [39 / 64, 0, -65504]);
  });
});

Deno.test("a value whose scale does not fit is refused, and abortion leaves nothing", async () => {
  await withFolder(async (folder) => {
    const values = new Array<number>(64).fill(1);
    values[33] = 1e9;
    await Deno.writeFile(`${folder}/big.gguf`, damaged(values));
    const out = `${folder}/out.gguf`;
    await assertRejects(
      () => quantizeTo(`${folder}/big.gguf`, out, "q8_0"),
      FormatError,
      "does not fit Q8_0",
    );
    await assertRejects(
      () => quantizeTo(`${folder}/big.gguf`, `${folder}/out.safetensors`, "e0m4_g32"),
      FormatError,
      "block from value 32 as E0M4_G32",
    );
    const signal = AbortSignal.abort();
    await assertRejects(() => quantizeTo(TINY_LLAMA, out, "q4_0", { signal }), DOMException);
    assertEquals([...Deno.readDirSync(folder)].length, 1);
  });
});

/** Four million weights of two tensors, one of floats and one of whole numbers. */
function large(): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(1 << 23);
  return writeGguf({ "general.architecture": ["string", "llama"] }, [
    { name: "blk.0.ffn_up.weight", dims: [1024, 2048], type: 0, data },
    { name: "table", dims: [1 << 21], type: 26, data },
  ]);
}

Deno.test("a signal that fires later stops every way of writing, also copies, and leaves nothing", async () => {
  await withFolder(async (folder) => {
    await Deno.writeFile(`${folder}/in.gguf`, large());
    for (const format of ["q4_k", "q8_gl", "f32"]) {
      for (const outliers of format === "q4_k" ? [0, 0.001] : [0]) {
        const ending = format === "q8_gl" || outliers > 0 ? "safetensors" : "gguf";
        const file = await openModel(`${folder}/in.gguf`);
        const stop = new AbortController();
        const written: string[] = [];
        setTimeout(() => stop.abort(), 0);
        const options = {
          signal: stop.signal,
          onTensor: ({ name }: { readonly name: string }) => written.push(name),
        };
        const policy = { ...getPolicy(format), outliers };
        await assertRejects(
          () => quantizeModel(file, { path: `${folder}/out.${ending}`, policy }, options),
          DOMException,
        );
        file.close();
        assertEquals(written, [], format);
      }
    }
    const file = await openModel(`${folder}/in.gguf`);
    const stop = new AbortController();
    const onTensor = () => setTimeout(() => stop.abort(), 0);
    await assertRejects(
      () =>
        quantizeModel(file, { path: `${folder}/out.gguf`, policy: getPolicy("f16") }, {
          ...{ signal: stop.signal, onTensor },
        }),
      DOMException,
    );
    file.close();
    assertEquals([...Deno.readDirSync(folder)].length, 1);
  });
});

Deno.test("what a killed try has left is no hindrance, is listed, and is not touched", async () => {
  await withFolder(async (folder) => {
    for (const [input, name] of [[TINY_LLAMA, "new.gguf"], [FOLDER, "new"]] as const) {
      const path = `${folder}/${name}`;
      const left = [`${path}.${Deno.pid}-2.partial`, `${path}.${Deno.pid}.partial`];
      await Deno.mkdir(left[0]!);
      await Deno.writeTextFile(left[1]!, "half");
      await Deno.writeTextFile(`${path}.partial`, "mine");
      await quantizeTo(input, path, "q8_0");
      assertEquals(listPartials(path).map((other) => other.replace(/\/$/, "")), left);
      assertEquals(await Deno.readTextFile(left[1]!), "half");
    }
  });
});

Deno.test("a folder's policy stands in it, and its configuration stays what it was", async () => {
  await withFolder(async (folder) => {
    await quantizeTo(FOLDER, `${folder}/new`, "8/4/4");
    const [before, after] = [await openModel(FOLDER), await openModel(`${folder}/new`)];
    before.close();
    after.close();
    const { [POLICY_KEY]: policy, ...config } = Object.fromEntries(after.metadata);
    assertEquals(config, Object.fromEntries(before.metadata));
    assertEquals(parsePolicy(policy as string), parsePolicy(JSON.stringify(getPolicy("8/4/4"))));
    const reasons = new Set(describeFormats(after).map(({ role, reason }) => `${role}: ${reason}`));
    assert(reasons.has("ffn_up: rule 1") && reasons.has("norm: kept"), [...reasons].join());
    assertEquals(describeFormats(before).every(({ reason }) => reason === ""), true);
  });
});

Deno.test("tensors of any name but the reserved one can be written", async () => {
  const f32 = getFormat("F32");
  const named = (name: string) => ({ name, shape: [1], format: f32, byteLength: 4 });
  const head = createSafetensorsHead(["__proto__", "constructor", "7"].map(named));
  const whole = new Uint8Array([...head, ...new Uint8Array(12)]);
  const file = await openSafetensors(memorySource("names", whole));
  assertEquals([...file.tensors.keys()], ["__proto__", "constructor", "7"]);
  assertThrows(() => createSafetensorsHead([named("__metadata__")]), RangeError, "__metadata__");
});

Deno.test("a note of formats that contradicts the file is refused", async () => {
  const format = getFormat("E0M4_G32");
  const tensor = { name: "w", shape: [2, 64], format, byteLength: 80 };
  const whole = new Uint8Array([...createSafetensorsHead([tensor]), ...new Uint8Array(80)]);
  const file = await openSafetensors(memorySource("good", whole));
  assertEquals(file.tensors.get("w")!.shape, [2, 64]);
  assertEquals(file.tensors.get("w")!.format, "E0M4_G32");
  const open = (notes: unknown) => {
    const header = {
      __metadata__: { troodon: typeof notes === "string" ? notes : JSON.stringify(notes) },
      w: { dtype: "U8", shape: [2, 40], data_offsets: [0, 80] },
    };
    return openSafetensors(memorySource("bad", writeSafetensors(header, new Uint8Array(80))));
  };
  const note = (entry: unknown, name = "w") => ({ version: 1, tensors: { [name]: entry } });
  const broken: readonly (readonly [unknown, RegExp])[] = [
    ["{", /bad, __metadata__.troodon/],
    [note({ format: "E0M4_G32", shape: [2, 64] }, "v"), /has a format but is not in the file/],
    [note({ format: "E0M4_G32", shape: [2, 32] }), /does not fill 80 bytes/],
    [note({ format: "E0M4_G32", shape: [2, 40] }), /not whole E0M4_G32 blocks/],
    [note({ format: "E0M4_G32", shape: [] }), /not stated well/],
    [note({ format: 3, shape: [2, 64] }), /not stated well/],
  ];
  for (const [notes, message] of broken) {
    assertMatch((await assertRejects(() => open(notes), FormatError)).message, message);
  }
  await assertRejects(() => open(note({ format: "Q9", shape: [2] })), UnsupportedError, '"Q9"');
  await assertRejects(() => open({ version: 2, tensors: {} }), UnsupportedError, "version");
  const cut = whole.subarray(0, whole.length - 1);
  await assertRejects(
    () => openSafetensors(memorySource("cut", cut)),
    FormatError,
    "1 bytes missing",
  );
});

Deno.test("a file is the same byte for byte on any number of threads, and so are the errors that are told", async () => {
  await withFolder(async (folder) => {
    const [rows, columns] = [1100, 1024];
    const data = new Uint8Array(rows * columns * 4);
    new Float32Array(data.buffer).set(createCaseRandom(3).normal(rows * columns, 0.1));
    const tensor = { name: "blk.0.ffn_up.weight", dims: [columns, rows], type: 0, data };
    const input = `${folder}/in.gguf`;
    await Deno.writeFile(
      input,
      writeGguf({ "general.architecture": ["string", "llama"] }, [tensor]),
    );
    const policies = [getPolicy("q6_k"), { ...getPolicy("e0m4_g64"), outliers: 0.001 }];
    for (const [i, policy] of policies.entries()) {
      const results = [];
      for (const threads of [1, 3]) {
        const file = await openModel(input);
        const path = `${folder}/${i}-${threads}.${["gguf", "safetensors"][i]}`;
        const { tensors } = await quantizeModel(file, { path, policy }, { threads })
          .finally(() => file.close());
        results.push({ tensors, bytes: await Deno.readFile(path) });
      }
      assertEquals(results[0], results[1]);
    }
  });
});

Deno.test("memory stays below four times the largest tensor and 200 MB", async () => {
  await withFolder(async (folder) => {
    // 64 MB of weights in one tensor; a run of rows is 4 MB decoded.
    const [rows, columns] = [8192, 4096];
    const data = new Uint8Array(rows * columns * 2);
    for (let i = 0; i < data.length; i += 2) data[i + 1] = 0x2c + (i & 3);
    const tensor = { name: "blk.0.ffn_up.weight", dims: [columns, rows], type: 1, data };
    const bytes = writeGguf({ "general.architecture": ["string", "llama"] }, [tensor]);
    await Deno.writeFile(`${folder}/big.gguf`, bytes);
    const code = `
      const { openModel } = await import("${new URL(
      "../engine/models/open_model.ts",
      import.meta.url,
    )}");
      const { quantizeModel } = await import("${new URL(
      "../engine/quantize/quantize.ts",
      import.meta.url,
    )}");
      const { getPolicy } = await import("${new URL("../quant/policies.ts", import.meta.url)}");
      const before = Deno.memoryUsage().rss;
      const file = await openModel("${folder}/big.gguf");
      let most = 0;
      const watch = setInterval(() => most = Math.max(most, Deno.memoryUsage().rss), 5);
      const policy = getPolicy("q4_0");
      await quantizeModel(file, { path: "${folder}/out.gguf", policy }, { threads: 8 });
      clearInterval(watch);
      console.log(Math.max(most, Deno.memoryUsage().rss) - before);
    `;
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-check", code],
    }).output();
    const grown = Number(new TextDecoder().decode(stdout));
    assert(grown > 0, new TextDecoder().decode(stderr));
    assertLess(grown, 200e6); // The tensor itself is never in memory.
  });
});

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { formats } from "../../../quant/mod.ts";
import { fixturePath, readFixture } from "../../../tests/support/fixtures.ts";
import {
  dict,
  int,
  pickleBytes,
  type PicklePart,
  tensor,
  text,
  tuple,
  writeTorchLegacy,
  writeTorchZip,
} from "../../../tests/support/write_pickle.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError, TroodonError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { openModel } from "../../models/open_model.ts";
import type { TensorInfo, WeightFile } from "../source.ts";
import { runPickle } from "./machine.ts";
import { createReader } from "./reader.ts";
import { openTorchLegacy } from "./torch_legacy.ts";
import { openTorchZip } from "./torch_zip.ts";
import type { PickleValue } from "./values.ts";
import fc from "fast-check";

interface HostileCase {
  readonly file: string;
  readonly defect: string;
  readonly verdict: "accept" | "reject" | "either";
  readonly expect?: Readonly<Record<string, readonly number[]>>;
}

/** Words that a person needs to see. */
const MUST_SAY: Readonly<Record<string, string>> = {
  "os_system.bin": '"os.system"',
  "os_system_inside_state.bin": '"posix.system"',
  "os_system_protocol4.bin": '"os.system"',
  "builtins_eval.bin": '"builtins.eval"',
  "global_unused.bin": '"subprocess.Popen"',
  "global_not_allowed.bin": '"collections.Counter"',
  "global_case.bin": "FloatStorage\\r",
  "protocol_99.bin": "protocol 99",
  "storage_key_traversal.bin": "../../../etc/hostname",
  "expand_bomb.bin": "4398046511104 bytes",
  "zip_encrypted_flag.bin": "encrypted",
  "zip_duplicate_member.bin": "two entries",
  "zip_no_pickle.bin": "without data.pkl",
};

async function readTensor({ source, offset, byteLength, format }: TensorInfo): Promise<number[]> {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  if (format === "I64") return Array.from(new BigInt64Array(bytes.buffer), Number);
  const record = formats.get(format)!;
  const values = new Float32Array(byteLength / record.blockBytes);
  record.decode(bytes, values);
  return [...values];
}

async function readAll(file: WeightFile): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (const tensor of file.tensors.values()) found[tensor.name] = await readTensor(tensor);
  return found;
}

function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

function openZip(root: PicklePart, storages: Readonly<Record<string, Uint8Array>>) {
  return openTorchZip(memorySource("a.bin", writeTorchZip(root, storages)));
}

/** Runs a pickle of plain data. */
function run(...parts: readonly PicklePart[]): PickleValue {
  return runPickle(createReader(pickleBytes(...parts), "p"), { globals: new Map() });
}

const { files } = JSON.parse(readFixture("models/hostile_pickle/index.json")) as {
  files: HostileCase[];
};

for (const { file, defect, verdict, expect } of files) {
  Deno.test(`hostile checkpoint ${file} (${defect}): ${verdict}`, async () => {
    let model: WeightFile;
    try {
      model = await openModel(fixturePath(`models/hostile_pickle/${file}`));
    } catch (error) {
      assertInstanceOf(error, TroodonError);
      assert(verdict !== "accept", error.message);
      assert(!error.message.includes("\n"), "one line");
      assertStringIncludes(error.message, file);
      assertStringIncludes(error.message, MUST_SAY[file] ?? "");
      return;
    }
    assert(verdict !== "reject", "must be refused");
    const values = await readAll(model);
    for (const [name, wanted] of Object.entries(expect ?? {})) {
      assertEquals(values[name]?.slice(0, wanted.length), wanted);
    }
    assertEquals(({} as { polluted?: unknown }).polluted, undefined);
    model.close();
  });
}

Deno.test("a checkpoint of mixed types, strides and shared storages opens, tied tensors at one place", async () => {
  const model = await openModel(fixturePath("models/llama_formats/pytorch_model.bin"));
  assertEquals(model.kind, "pickle");
  assertEquals(model.metadata.get("model_type"), "llama");
  const shapes = Object.fromEntries(
    [...model.tensors.values()].map(({ name, format, shape }) => [name, `${format} ${shape}`]),
  );
  assertEquals(shapes["lm_head.weight"], "F16 288,32");
  assertEquals(shapes["model.rotary.steps"], "I64 ");
  const [embedding, head] = ["model.embed_tokens.weight", "lm_head.weight"]
    .map((name) => model.tensors.get(name)!);
  assertEquals(embedding.offset, head.offset, "tied tensors are the same bytes");
  for (const tensor of model.tensors.values()) {
    for (const value of await readTensor(tensor)) assert(Number.isFinite(value), tensor.name);
  }
  model.close();
});

Deno.test("protocol 4 with frames and nested dicts gives names with dots, and plain values", async () => {
  const bytes = Deno.readFileSync(fixturePath("models/llama_formats/protocol4.pt"));
  const model = await openTorchZip(memorySource("protocol4.pt", bytes));
  assertEquals(await readAll(model), {
    a: [0, 1, 2, 3, 4, 5],
    b: [0, 1, 2, 3],
    "nested.c": [1, 1],
  });
  assertEquals([...model.metadata], [["step", 3], ["name", "x"]]);
});

Deno.test("a legacy checkpoint opens, also through its name", async () => {
  const model = await openModel(fixturePath("models/llama_formats/legacy_not_zip.pt"));
  assertEquals(await readAll(model), { a: [0, 1, 2, 3, 4, 5] });
  model.close();
});

Deno.test("views of legacy storages begin where they say", async () => {
  const view = tuple(text("v"), int(2), int(3));
  const root = dict({
    whole: tensor({ stored: 6, size: [6], stride: [1] }),
    part: tensor({ stored: 6, size: [2], stride: [1], offset: 1, view }),
  });
  const data = floats(0, 1, 2, 3, 4, 5);
  const bytes = writeTorchLegacy(root, [{ key: "0", elements: 6, data }]);
  const model = await openTorchLegacy(memorySource("a.pt", bytes));
  assertEquals(await readAll(model), { whole: [0, 1, 2, 3, 4, 5], part: [3, 4] });
});

Deno.test("legacy files whose storages are short, unlisted or followed by something are refused", async () => {
  const root = dict({ w: tensor({ stored: 2, size: [2], stride: [1] }) });
  const open = (storages: Parameters<typeof writeTorchLegacy>[1], extra = 0) => {
    const bytes = pickleBytes(writeTorchLegacy(root, storages), new Uint8Array(extra));
    return openTorchLegacy(memorySource("a.pt", bytes));
  };
  const good = { key: "0", elements: 2, data: floats(1, 2) };
  assertEquals(await readAll(await open([good])), { w: [1, 2] });
  await assertRejects(() => open([{ ...good, data: floats(1) }]), FormatError, "past the end");
  await assertRejects(() => open([{ ...good, elements: 3 }]), FormatError, "3 elements of 2");
  await assertRejects(() => open([]), FormatError, 'does not hold storage "0"');
  await assertRejects(() => open([{ ...good, key: "1" }]), FormatError, "unused");
  await assertRejects(() => open([good, good]), FormatError, "twice");
  await assertRejects(() => open([good], 3), FormatError, "3 bytes follow");
});

Deno.test("any strided view equals its elements one by one, read whole or in pieces", async () => {
  const views = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 6 })), {
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(views, fc.integer({ min: 0, max: 3 }), async (dims, offset) => {
      const size = dims.map(([n]) => n);
      const stride = dims.map(([, step]) => step);
      const last = dims.reduce((sum, [n, step]) => sum + Math.max(0, n - 1) * step, offset);
      const storage = Float32Array.from({ length: last + 1 }, (_, i) => i);
      const wanted = size.reduce<number[]>(
        (places, n, d) =>
          places.flatMap((place) => Array.from({ length: n }, (_, i) => place + i * stride[d])),
        [offset],
      );
      const root = dict({
        w: tensor({ stored: last + 1, offset, size, stride }),
        pad: text("x".repeat(999)),
      });
      const model = await openZip(root, { "0": new Uint8Array(storage.buffer) });
      const view = model.tensors.get("w")!;
      assertEquals(view.shape, size);
      assertEquals(await readTensor(view), wanted);
      const bytes = new Uint8Array(view.byteLength);
      for (let at = 0; at < bytes.length; at += 7) {
        await view.source.readInto(view.offset + at, bytes.subarray(at, at + 7));
      }
      assertEquals([...new Float32Array(bytes.buffer)], wanted);
    }),
    { seed: 8, numRuns: 200 },
  );
});

Deno.test("strided views are read from asynchronous sources, too", async () => {
  const root = dict({ w: tensor({ stored: 6, size: [3, 2], stride: [1, 3] }) });
  const inner = memorySource("a.bin", writeTorchZip(root, { "0": floats(0, 1, 2, 3, 4, 5) }));
  const source: ByteSource = {
    ...inner,
    readInto: (offset, target) => Promise.resolve().then(() => inner.readInto(offset, target)),
  };
  const model = await openTorchZip(source);
  assertEquals(await readAll(model), { w: [0, 3, 1, 4, 2, 5] });
});

Deno.test("shards are found through pytorch_model.bin.index.json", async () => {
  const folder = Deno.makeTempDirSync();
  try {
    const shard = (name: string, value: number) =>
      writeTorchZip(dict({ [name]: tensor({ stored: 1, size: [1], stride: [1] }) }), {
        "0": floats(value),
      });
    Deno.writeFileSync(`${folder}/one.bin`, shard("a", 1));
    Deno.writeFileSync(`${folder}/two.bin`, shard("b", 2));
    const index = { weight_map: { a: "one.bin", b: "two.bin" } };
    Deno.writeTextFileSync(`${folder}/pytorch_model.bin.index.json`, JSON.stringify(index));
    Deno.writeTextFileSync(`${folder}/config.json`, `{"model_type":"x"}`);
    for (const path of [folder, `${folder}/pytorch_model.bin.index.json`]) {
      const model = await openModel(path);
      assertEquals(await readAll(model), { a: [1], b: [2] });
      assertEquals(model.metadata.get("model_type"), "x");
      model.close();
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("a global is matched as a whole, however it is cut into module and name", async () => {
  for (
    const [module, name] of [["torch._utils", "_rebuild_tensor_v2.__globals__"], [
      "torch",
      "_utils._rebuild_tensor_v2",
    ]]
  ) {
    const root: PicklePart = [text(module), text(name), "\x93"];
    await assertRejects(() => openZip(root, {}), UnsupportedError, "Nothing in it was run");
  }
});

Deno.test("opcodes build the values that Python's do", () => {
  const plain: [string, PickleValue][] = [
    ["\x80\x02K\x07.", 7],
    ["I-12\n.", -12],
    ["I01\n.", true],
    ["L34L\n.", 34],
    ["\x8a\x00.", 0],
    ["\x8a\x01\xff.", -1],
    ["\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", 2n ** 63n - 1n],
    ["G\x3f\xf8\x00\x00\x00\x00\x00\x00.", 1.5],
    ["F-2.5\n.", -2.5],
    ["S'abc'\n.", "abc"],
    ["U\x02h\xe9.", "hé"],
    ["\x8c\x03\xe2\x82\xac.", "€"],
    ["(K\x01K\x021K\x05.", 5],
    ["K\x05(0.", 5],
    ["K\x01q\x000h\x00.", 1],
    ["\x80\x04K\x01\x94p7\n0g7\n.", 1],
  ];
  for (const [parts, wanted] of plain) assertEquals(run(parts), wanted);
  assertEquals(run("(K\x01K\x02l."), { kind: "list", items: [1, 2] });
  assertEquals(run("](K\x01K\x02eK\x03a."), { kind: "list", items: [1, 2, 3] });
  const entries = new Map([["a", 1], ["b", 2]]);
  const spellings = [
    "(U\x01aK\x01U\x01bK\x02d.",
    "}U\x01aK\x01sU\x01bK\x02s.",
    "}(U\x01aK\x01U\x01bK\x02u.",
  ];
  for (const spelling of spellings) {
    assertEquals(run(spelling), { kind: "dict", entries, isOrdered: false });
  }
});

Deno.test("misused opcodes are refused with their place", () => {
  const bad: [string, string][] = [
    ["(K\x01.", "open mark"],
    ["K\x01K\x02.", "2 values"],
    ["K\x01(0", "1 bytes"],
    ["(K\x010(.", "open mark"],
    ["K\x01U\x01aa.", "cannot append to 1"],
    ["I1x\n.", "no integer"],
    ["Fabc\n.", "no number"],
    ["S'a\\n'\n.", "no plain string"],
    ["p1\n.", "stack is empty"],
    ["(p1\n.", "stack is empty"],
    ["K\x01Q.", "names no storage"],
    ["\x97.", "opcode 0x97"],
  ];
  for (const [bytes, message] of bad) assertThrows(() => run(bytes), FormatError, message);
});

Deno.test("reading costs memory in proportion to the file", async () => {
  const before = Deno.memoryUsage().rss;
  for (const { file } of files) {
    await openModel(fixturePath(`models/hostile_pickle/${file}`)).then((m) => m.close(), () => {});
  }
  assertLess(Deno.memoryUsage().rss - before, 64e6);
});

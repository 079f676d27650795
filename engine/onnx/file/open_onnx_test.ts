import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import {
  bytes,
  floats,
  type GraphParts,
  longs,
  message,
  type Tensor,
  varint,
  writeOnnx,
} from "../../../tests/support/write_onnx.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { readTensor } from "../derivation/constants.ts";
import { memorySource } from "../../io.ts";
import { openOnnx, readOnnx } from "./open_onnx.ts";
import { MOST_NESTED_GRAPHS } from "./read_graph.ts";

const IDENTITY: GraphParts = {
  inputs: [["x", 1, [1, 4]]],
  outputs: [["y", 1, [1, 4]]],
  nodes: [{ op: "MatMul", inputs: ["x", "W"], outputs: ["y"], name: "product" }],
};

function withWeight(weight: Partial<Tensor>): Uint8Array<ArrayBuffer> {
  const full = { name: "W", type: 1, dims: [4, 4], raw: floats(...Array(16).keys()), ...weight };
  return writeOnnx({ ...IDENTITY, initializers: [full] });
}

function read(file: Uint8Array) {
  return readOnnx(memorySource("model.onnx", file));
}

Deno.test("nodes, types, attributes and operator sets come as the file says", () => {
  const { graph, opsets, irVersion } = read(writeOnnx({
    name: "parts",
    inputs: [["x", 1, ["N", 4]]],
    outputs: [["y", 7, ["N"]]],
    initializers: [{ name: "k", type: 7, dims: [2], raw: longs(-1, 2 ** 40) }],
    nodes: [{
      op: "Odd",
      domain: "test",
      inputs: ["x", "", "k"],
      outputs: ["y"],
      attributes: {
        one: { i: -3 },
        many: { ints: [1, -(2n ** 63n)] },
        real: { f: 0.5 },
        word: { s: "zwölf" },
        tensor: { t: { type: 1, dims: [2], floats: [1, 2] } },
        body: { g: { inputs: [], outputs: [["x", 1, []]], nodes: [] } },
      },
    }],
  }, { opsets: { "": 17, test: 2 } }));
  assertEquals([irVersion, graph.name], [8, "parts"]);
  assertEquals([...opsets], [["", 17], ["test", 2]]);
  assertEquals(graph.inputs, [{
    name: "x",
    type: { kind: "tensor", dtype: "f32", shape: ["N", 4] },
  }]);
  const [node] = graph.nodes;
  assertEquals([node!.opType, node!.domain, node!.name], ["Odd", "test", "Odd(y)"]);
  assertEquals(node!.inputs, ["x", "", "k"]);
  const { attributes } = node!;
  assertEquals(attributes.get("one"), { kind: "int", value: -3, exact: -3n });
  assertEquals(attributes.get("many"), {
    kind: "ints",
    value: [1, -(2 ** 63)],
    exact: [1n, -(2n ** 63n)],
  });
  assertEquals(attributes.get("real"), { kind: "float", value: 0.5 });
  assertEquals(attributes.get("word"), { kind: "string", value: "zwölf" });
  const tensor = attributes.get("tensor");
  assert(tensor?.kind === "tensor");
  assertEquals([...readTensor(tensor.value).data], [1, 2]);
  const body = attributes.get("body");
  assert(body?.kind === "graph");
  assertEquals(body.value.outputs.map(({ name }) => name), ["x"]);
  assertEquals([...readTensor(graph.initializers.get("k")!).data], [-1n, 2n ** 40n]);
});

Deno.test("a weight is not read while opening, whatever its size", () => {
  const file = withWeight({ dims: [1024, 1024], raw: new Uint8Array(4 * 2 ** 20) });
  const source = memorySource("model.onnx", file);
  let read = 0;
  const counting: ByteSource = {
    ...source,
    readInto(offset: number, target: Uint8Array) {
      read += target.length;
      return source.readInto(offset, target);
    },
  };
  const info = readOnnx(counting).graph.initializers.get("W")!.tensor!;
  assertEquals([info.byteLength, info.shape], [4 * 2 ** 20, [1024, 1024]]);
  assert(read < 2 ** 20, `${read} bytes were read`);
});

Deno.test("elements of less than a byte lie in low bits first", () => {
  const values = (type: number, dims: readonly number[], raw: readonly number[]) => {
    const model = read(withWeight({ type, dims, raw: Uint8Array.from(raw) }));
    return [...readTensor(model.graph.initializers.get("W")!).data];
  };
  assertEquals(values(21, [3], [0xf1, 0x08]), [1, 15, 8]);
  assertEquals(values(22, [3], [0xf1, 0x08]), [1, -1, -8]);
  assertEquals(values(26, [5], [0b11100100, 0b01]), [0, 1, -2, -1, 1]);
});

/** A million ones, packed as a repeated field. */
const PACKED = new Uint8Array(1_000_000).fill(1);
const PACKED_SIZES = bytes(1, PACKED);

function withGraph(field: Uint8Array): Uint8Array<ArrayBuffer> {
  return message(varint(1, 8), bytes(7, field));
}

Deno.test("elements that stand one by one are read in their order", () => {
  const count = 300_000;
  const one = (i: number) => varint(7, i);
  const tensor = message(
    ...[varint(1, count), varint(2, 7), bytes(8, new TextEncoder().encode("k"))],
    joined(Array.from({ length: count }, (_, i) => one(i))),
  );
  const { data } = readTensor(read(withGraph(bytes(5, tensor))).graph.initializers.get("k")!);
  assertEquals([data.length, data[1], data[count - 1]], [count, 1n, BigInt(count - 1)]);
});

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// What is wrong, and what the message must say.
const DAMAGED: readonly (readonly [name: string, file: Uint8Array, message: RegExp])[] = [
  ["no bytes", new Uint8Array(0), /no graph/],
  ["another format", new TextEncoder().encode("GGUF\x03\0\0\0"), /byte \d+: wire type 7/],
  ["a cut", withWeight({}).subarray(0, 70), /byte \d+: truncated: \d+ bytes are claimed/],
  [
    "a length past the end",
    message(Uint8Array.of(0x3a), Uint8Array.of(255, 255, 255, 255, 7), new Uint8Array(8)),
    /truncated: 2147483647 bytes are claimed, 8 follow/,
  ],
  [
    "a varint of 11 bytes",
    message(Uint8Array.of(8), new Uint8Array(10).fill(0x80), Uint8Array.of(1)),
    /varint too long: more than 10 bytes/,
  ],
  [
    "a varint beyond 64 bits",
    message(Uint8Array.of(8), new Uint8Array(9).fill(0xff), Uint8Array.of(3)),
    /varint too long: more than 64 bits/,
  ],
  ["a reserved wire type", message(Uint8Array.of(0x1e)), /wire type 6/],
  ["a negative size", withWeight({ dims: [-4, 4] }), /tensor W: a negative size in \[-4,4\]/],
  ["sizes that wrap to 0", withWeight({ dims: [2n ** 32n, 2n ** 32n] }), /beyond 2\^53/],
  [
    "sizes of terabytes",
    withWeight({ dims: [4, 2 ** 40] }),
    /tensor W: 64 bytes for f32\[4,1099511627776\], which takes 17592186044416/,
  ],
  ["too few bytes", withWeight({ raw: new Uint8Array(60) }), /W: 60 bytes for f32\[4,4\].* 64/],
  ["too many bytes", withWeight({ raw: new Uint8Array(68) }), /W: 68 bytes for f32\[4,4\].* 64/],
  [
    "elements in two places",
    withWeight({ floats: [1] }),
    /W: elements in raw_data and float_data: one may be set/,
  ],
  ["an unknown type", withWeight({ type: 99 }), /tensor W: element type 99 is not supported/],
  ["no type", withWeight({ type: 0 }), /tensor W: element type 0/],
  [
    "external data without a folder",
    writeOnnx({
      ...IDENTITY,
      initializers: [{ name: "W", type: 1, dims: [4, 4], external: { location: "w.bin" } }],
    }),
    /refers to "w.bin", but has no folder/,
  ],
  ["operator set -3", writeOnnx(IDENTITY, { opsets: { "": -3 } }), /"ai.onnx" of version -3/],
  [
    "one operator set twice",
    writeOnnx(IDENTITY, { opsets: { "": 17, "ai.onnx": 11 } }),
    /"ai.onnx" is imported as 17 and as 11/,
  ],
  [
    "a tensor of 65 sizes",
    writeOnnx({
      ...IDENTITY,
      initializers: [{ type: 1, dims: Array(65).fill(1) }],
    }),
    /a tensor of more than 64 dims/,
  ],
  ["packed sizes without end", withGraph(bytes(5, PACKED_SIZES)), /more than 64 dims/],
  ["a sparse shape without end", withGraph(bytes(15, bytes(3, PACKED))), /more than 64 dims/],
  ["bodies without end", writeOnnx(nested(MOST_NESTED_GRAPHS + 1)), /nested too deeply/],
];

function nested(depth: number): GraphParts {
  let graph: GraphParts = { ...IDENTITY, nodes: [] };
  for (let i = 0; i < depth; i++) {
    const attributes = { then_branch: { g: graph } };
    graph = { ...IDENTITY, nodes: [{ op: "If", inputs: ["c"], outputs: ["y"], attributes }] };
  }
  return graph;
}

for (const [name, file, message] of DAMAGED) {
  Deno.test(`a file with ${name} is refused`, () => {
    const error = assertThrows(() => read(file), FormatError);
    assertMatch(error.message, message);
  });
}

Deno.test("redundant varints, unknown fields and bodies up to the limit are accepted", () => {
  const padded = message(
    Uint8Array.of(8, 0x88, 0x80, 0x00),
    withWeight({}).subarray(2),
    varint(1000, 7),
    bytes(1005, new Uint8Array(9)),
  );
  const { irVersion, graph } = read(padded);
  assertEquals([irVersion, graph.nodes.length], [8, 1]);
  assertEquals(read(writeOnnx(nested(MOST_NESTED_GRAPHS))).graph.nodes.length, 1);
});

async function inFolder(use: (folder: string) => Promise<void> | void): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function external(entries: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
  const tensor = { name: "W", type: 1, dims: [4, 4], external: entries };
  return writeOnnx({ ...IDENTITY, initializers: [tensor] });
}

Deno.test("external data is read from the model's folder, by its range", () =>
  inFolder((folder) => {
    Deno.writeFileSync(`${folder}/w.bin`, floats(9, ...Array(16).keys()));
    const path = `${folder}/m.onnx`;
    Deno.writeFileSync(path, external({ location: "w.bin", offset: "4", length: "64" }));
    const model = openOnnx(path);
    assertEquals([...readTensor(model.graph.initializers.get("W")!).data], [...Array(16).keys()]);
    model.close();
  }));

Deno.test("external data may be a hard link, as package stores make them: it is a plain file", () =>
  inFolder((folder) => {
    Deno.writeFileSync(`${folder}/stored.bin`, floats(...Array(16).keys()));
    Deno.mkdirSync(`${folder}/m`);
    Deno.linkSync(`${folder}/stored.bin`, `${folder}/m/w.bin`);
    const path = `${folder}/m/model.onnx`;
    Deno.writeFileSync(path, external({ location: "w.bin" }));
    const model = openOnnx(path);
    assertEquals([...readTensor(model.graph.initializers.get("W")!).data], [...Array(16).keys()]);
    model.close();
  }));

Deno.test("external data outside the folder, or beyond its file, is refused", () =>
  inFolder((folder) => {
    Deno.mkdirSync(`${folder}/m`);
    Deno.writeFileSync(`${folder}/outside.bin`, new Uint8Array(64));
    Deno.writeFileSync(`${folder}/m/w.bin`, new Uint8Array(64));
    Deno.symlinkSync("../outside.bin", `${folder}/m/link.bin`);
    Deno.symlinkSync("w.bin", `${folder}/m/inner.bin`);
    const path = `${folder}/m/model.onnx`;
    const open = (entries: Readonly<Record<string, string>>) => {
      Deno.writeFileSync(path, external(entries));
      openOnnx(path).close();
    };
    for (
      const location of [
        `${folder}/outside.bin`,
        "../outside.bin",
        "sub/../../outside.bin",
        "..\\outside.bin",
        "file:///etc/hostname",
        "w.bin\0.txt",
        "link.bin",
        "",
      ]
    ) {
      const error = assertThrows(() => open({ location }), FormatError);
      assertMatch(error.message, /may only refer to files in their own folder/);
    }
    open({ location: "inner.bin" });
    assertThrows(() => open({ location: "none.bin" }), SourceError, "none.bin");
    for (
      const [entries, message] of [
        [{ offset: "64" }, /bytes 64 to 128 of "w.bin", which has 64/],
        [{ offset: "32", length: "64" }, /bytes 32 to 96/],
        [{ offset: "-4" }, /external offset "-4"/],
        [{ offset: "18446744073709551616" }, /external offset "18446744073709551616"/],
        [{ length: "60" }, /60 bytes for f32\[4,4\]/],
      ] as const
    ) {
      const error = assertThrows(() => open({ location: "w.bin", ...entries }), FormatError);
      assertMatch(error.message, message);
    }
  }));

Deno.test("errors are Troodon's own, in one line", () => {
  for (const [, file] of DAMAGED) {
    const error = assertThrows(() => read(file)) as Error;
    assert(error instanceof FormatError && !(error instanceof UnsupportedError));
    assert(!error.message.includes("\n"));
  }
});

// Zeros of both signs, infinities, NaN, denormals and the edges of types through every op that computes or orders
// elements, on every device, beside numpy (tools/fixtures/make_special_values.py). An op, or a kind of function of
// one, that has no row in that table fails here.

import { assertEquals, assertGreater, assertRejects } from "@std/assert";
import { UnsupportedError } from "../engine/errors.ts";
import { BINARY_NAMES } from "../functions/binary.ts";
import { EPILOGUE_NAMES, UNARY_NAMES } from "../functions/unary.ts";
import type { Attributes, DataType, HostData } from "../engine/graph/graph.ts";
import { elementCount, getElement, hostArray, type HostTensor } from "../engine/ops/host_tensor.ts";
import type { CaseInput, OpCase } from "../engine/ops/op_case.ts";
import { ops } from "../engine/ops/mod.ts";
import { GATE_NAMES } from "../engine/ops/records/glu.ts";
import { REDUCE_NAMES } from "../engine/ops/reduce_kinds.ts";
import { SCATTER_REDUCTIONS } from "../engine/ops/reductions.ts";
import type { Backend } from "../engine/run/backend.ts";
import { type CaseResult, runCase } from "../engine/run/case_run.ts";
import { createGpuBackend } from "../engine/run/gpu/backend.ts";
import { kernelNames } from "../engine/run/kernel_choice.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { createWasmBackend } from "../engine/run/wasm/backend.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";

interface Stored {
  readonly dtype: DataType;
  readonly shape: readonly number[];
  /** Base64, little-endian. */
  readonly data: string;
}

/** What an element may be as well. */
type Other = readonly [output: number, index: number, value: number];

interface Row {
  readonly op: string;
  readonly name: string;
  readonly attributes: Attributes;
  readonly inputs: readonly string[];
  readonly outputs: readonly Stored[];
  readonly flushed: readonly Other[];
  readonly narrow: readonly Other[];
}

const { tensors, rows } = await readTable() as {
  readonly tensors: Readonly<Record<string, Stored>>;
  readonly rows: readonly Row[];
};

async function readTable(): Promise<unknown> {
  const file = await Deno.open(fixturePath("special_values.json.gz"));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).json();
}

/** Ops without a row, by the reason. */
const WITHOUT: Readonly<Record<string, readonly string[]>> = {
  "moves elements, or makes them from indices": [
    ...["append_rows", "bit_cast", "concat", "embed", "expand", "eye", "from_dims", "gather"],
    ...[
      "gather_elements",
      "gather_nd",
      "join_columns",
      "kv_append",
      "max_unpool",
      "one_hot",
      "pad",
    ],
    ...["random", "range", "recv", "reshape", "reverse_sequence", "select_rows", "send", "slice"],
    ...["tile", "transpose", "trilu", "unpack_bits"],
  ],
  "sums of products, which arithmetic takes infinities and NaN through": [
    ...["affine_grid", "col2im", "conv_integer", "deform_conv", "dequantize_linear", "det", "dft"],
    ...[
      "expert_matmul",
      "grid_sample",
      "linear_attention",
      "matmul",
      "matmul_integer",
    ],
    ...[
      "matmul_nd",
      "nll_loss",
      "roi_align",
      "rope",
      "rope_table",
      "sparse_add",
    ],
    ...["all_reduce", "weighted_sum"],
  ],
  "softmax and gates of rows that have rows here": [
    ...["recurrent"],
  ],
  "codes of 8 bit, which hold finite numbers only": [
    ...["dynamic_quantize", "quantize"],
  ],
};

Deno.test("every op has special values, or a reason to have none", () => {
  const named = [...new Set(rows.map(({ op }) => op)), ...Object.values(WITHOUT).flat()];
  assertEquals(named.toSorted(), [...ops.keys()].toSorted());
});

/** Attribute that names a function, and its names, by op. */
const KINDS: Readonly<Record<string, readonly [attribute: string, names: readonly string[]]>> = {
  unary: ["kind", UNARY_NAMES],
  binary: ["kind", BINARY_NAMES],
  reduce: ["kind", REDUCE_NAMES],
  glu: ["activation", GATE_NAMES],
  conv: ["activation", EPILOGUE_NAMES],
  conv_transpose: ["activation", EPILOGUE_NAMES],
  group_norm: ["activation", EPILOGUE_NAMES],
  scatter_elements: ["reduction", SCATTER_REDUCTIONS],
  scatter_nd: ["reduction", SCATTER_REDUCTIONS],
};

for (const [op, [attribute, names]] of Object.entries(KINDS)) {
  Deno.test(`every ${attribute} of ${op} has special values`, () => {
    const found = rows.filter((row) => row.op === op).map(({ attributes }) =>
      attributes[attribute]
    );
    assertEquals([...new Set(found)].toSorted(), names.toSorted());
  });
}

function tensorOf({ dtype, shape, data }: Stored): HostTensor {
  return {
    dtype,
    shape,
    data: hostArray(dtype, { count: elementCount(shape), buffer: bufferOf(data) }),
  };
}

function bufferOf(data: string): ArrayBuffer {
  return Uint8Array.fromBase64(data).buffer;
}

function opCaseOf({ name, inputs, attributes }: Row): OpCase {
  const given = inputs.map((input) => {
    const role = input.startsWith("constant") ? "constant" : "input";
    return { role, ...tensorOf(tensors[input]!) } as CaseInput;
  });
  return { name, inputs: given, attributes };
}

/** How near a device comes. */
interface Accuracy {
  /** Part of a number that it may be off by. */
  readonly relative: number;
  /** Numbers below this may be zeros, or stay what they were. */
  readonly smallest: number;
  /** Further by how much, by op or kind of function. */
  readonly absolute: Readonly<Record<string, number>>;
  /** Whether zeros have the right sign. */
  readonly signs: boolean;
  readonly others: (row: Row) => readonly Other[];
}

// The exponentials inside of these functions have no denormals, or their arguments are rounded.
const TINY = 1e-31;
const GATES = {
  silu: TINY,
  sigmoid: TINY,
  mish: TINY,
  clamped: TINY,
  softmax: TINY,
  erf: TINY,
};

const REFERENCE: Accuracy = {
  relative: 1.2e-7,
  smallest: 1.5e-45,
  absolute: {},
  signs: true,
  others: () => [],
};
const WASM: Accuracy = {
  relative: 1e-6,
  smallest: 1.5e-45,
  absolute: { ...GATES, gelu: 1e-6, gelu_tanh: 1e-12, softcap: TINY },
  signs: true,
  others: ({ narrow }) => narrow,
};
const GPU: Accuracy = {
  relative: 3e-5,
  smallest: 1.1754944e-38,
  absolute: { ...GATES, gelu: 1e-6, gelu_tanh: 1e-6, softcap: 1e-6 },
  signs: false,
  others: ({ narrow, flushed }) => [...narrow, ...flushed],
};

/** Ops whose zeros have the sign that IEEE 754 gives them, and kinds of them that may have either. */
const SIGNED = ["unary", "binary", "where", "cast", "top_k"];
const EITHER_ZERO = ["min", "max", "relu", "relu6", "sign", "gelu", "selu"];

/** Elements of a result that are not what they must be, a text each. */
function differences(row: Row, result: CaseResult, accuracy: Accuracy): string[] {
  const kind = String(row.attributes.kind ?? row.attributes.activation ?? row.op);
  const bound = accuracy.absolute[kind] ?? accuracy.absolute[row.op] ?? 0;
  const signs = accuracy.signs && SIGNED.includes(row.op) && !EITHER_ZERO.includes(kind);
  const others = accuracy.others(row);
  return row.outputs.flatMap((stored, output) => {
    const expected = tensorOf(stored);
    const data = result.get(`output${output}`) as HostData;
    return Array.from({ length: expected.data.length }, (_, i) => {
      const wanted = elementOf(expected, i), got = elementOf({ ...expected, data }, i);
      const allowed = others.flatMap(([o, at, value]) => o === output && at === i ? [value] : []);
      const isRight = isNear(got, wanted) || allowed.some((value) => isNear(got, Number(value)));
      return isRight ? [] : [`output${output}[${i}] is ${got}, wanted ${wanted}`];
    }).flat();
  });

  function isNear(got: number | bigint, wanted: number | bigint): boolean {
    if (Object.is(got, wanted) || got === wanted && (wanted !== 0 || !signs)) return true;
    if (typeof got === "bigint" || typeof wanted === "bigint" || !Number.isFinite(wanted)) {
      return false;
    }
    if (got === 0 && wanted === 0) return false;
    // The last bit of a denormal is a larger part of it.
    return Math.abs(got - wanted) <=
      accuracy.relative * Math.abs(wanted) + bound + accuracy.smallest;
  }
}

function elementOf(tensor: HostTensor, index: number): number | bigint {
  const value = tensor.data[index]!;
  return typeof value === "bigint" ? value : getElement(tensor, index);
}

async function check(backend: Backend, accuracy: Accuracy): Promise<void> {
  const wrong: string[] = [];
  const ran = new Set<string>();
  for (const row of rows) {
    const op = ops.get(row.op)!;
    const kernels = backend.name === "reference"
      ? [undefined]
      : kernelNames(backend.kernels, op.name);
    for (const kernel of kernels) {
      const result = await resultOf(backend, row, kernel);
      if (!result) continue;
      ran.add(kernel ?? row.op);
      const found = differences(row, result, accuracy);
      if (found.length > 0) {
        wrong.push(`${row.op}, ${row.name} (${kernel}): ${found.slice(0, 8).join("; ")}`);
      }
    }
  }
  assertEquals(wrong, []);
  assertGreater(ran.size, 20);
}

/** Undefined where the kernel does not take the row. */
async function resultOf(
  backend: Backend,
  row: Row,
  kernel: string | undefined,
): Promise<CaseResult | undefined> {
  try {
    return await runCase(backend, { op: ops.get(row.op)!, opCase: opCaseOf(row), kernel });
  } catch (error) {
    if (error instanceof UnsupportedError) return undefined;
    throw error;
  }
}

Deno.test("special values on the reference are numpy's", () =>
  check(createReferenceBackend(), REFERENCE));

for (const variant of ["baseline", "relaxed"] as const) {
  Deno.test(`special values on WASM are numpy's (${variant})`, () =>
    check(createWasmBackend({ variant, threads: 1, shared: true }), WASM));
}

gpuTest("special values on WebGPU are numpy's", () => check(createGpuBackend(), GPU));

Deno.test("a whole number divided by 0 is an error by name", async () => {
  const whole = (data: number[]): CaseInput => ({
    ...{ role: "input", dtype: "i32", shape: [data.length], data: Int32Array.from(data) },
  });
  const backends = [createReferenceBackend(), createWasmBackend({ threads: 1, shared: true })];
  for (const kind of ["div", "mod", "fmod"]) {
    const opCase = { name: kind, inputs: [whole([1, 5]), whole([0, -1])], attributes: { kind } };
    for (const backend of backends) {
      await assertRejects(
        () => runCase(backend, { op: ops.get("binary")!, opCase }),
        Error,
        "Cannot divide whole numbers by 0",
      );
    }
  }
});

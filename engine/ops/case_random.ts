// The seeded source of test data that ops' cases draw from (op_case.ts).

import { formatBytes, getFormat, type NumberFormat } from "../../quant/mod.ts";
import { evaluate } from "../graph/dim/mod.ts";
import { elementCount, hostArray, setElement } from "./host_tensor.ts";
import type { CaseRandom } from "./op_case.ts";

/** Same seed, same data. */
export function createCaseRandom(seed: number): CaseRandom {
  let state = seed >>> 0;

  // mulberry32: small and good enough to tell kernels apart.
  function uniform(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  function integer(min: number, max: number): number {
    return min + Math.floor(uniform() * (max - min + 1));
  }

  function normal(count: number, scale = 1): Float32Array {
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
      values[i] = scale * radius * Math.cos(2 * Math.PI * uniform());
    }
    return values;
  }

  // For formats without an encoder: random bytes, until they stand for ordinary numbers.
  function randomBlocks(format: NumberFormat, out: Uint8Array): void {
    const values = new Float32Array(format.blockSize);
    for (let at = 0; at < out.length; at += format.blockBytes) {
      const block = out.subarray(at, at + format.blockBytes);
      do {
        for (let i = 0; i < block.length; i++) block[i] = integer(0, 255);
        format.decode(block, values);
      } while (!values.every((value) => Math.abs(value) < 16));
    }
  }

  return {
    integer,
    normal,
    input(shape, bindings = {}) {
      const count = elementCount(shape.map((dim) => evaluate(dim, bindings)));
      return { role: "input", dtype: "f32", shape, data: normal(count) };
    },
    indices(values) {
      return { role: "input", dtype: "i32", shape: [values.length], data: Int32Array.from(values) };
    },
    typed(dtype, values) {
      const shape = [values.length], data = hostArray(dtype, { count: values.length });
      values.forEach((value, i) => {
        if (typeof value === "bigint") (data as BigInt64Array)[i] = value;
        else setElement({ dtype, shape, data }, { index: i, value });
      });
      return { role: "input", dtype, shape, data };
    },
    truths(shape) {
      const data = Uint8Array.from({ length: elementCount(shape) }, () => integer(0, 1));
      return { role: "input", dtype: "bool", shape, data };
    },
    codes(dtype, shape) {
      const length = elementCount(shape);
      const data = dtype === "u8"
        ? Uint8Array.from({ length }, () => integer(0, 255))
        : Int8Array.from({ length }, () => integer(-128, 127));
      return { role: "input", dtype, shape, data };
    },
    weight(name, shape) {
      const format = getFormat(name);
      const count = elementCount(shape);
      const bytes = new Uint8Array(formatBytes(format, count));
      // Some formats hold weights as models have them, and no larger numbers.
      const { largest = Infinity } = format.bounds ?? {};
      if (format.encode) {
        const values = normal(count, Math.min(1, largest / 4));
        format.encode(values.map((value) => Math.max(-largest, Math.min(largest, value))), bytes);
      } else randomBlocks(format, bytes);
      return { role: "weight", format: name, shape, bytes };
    },
  };
}

/** Normal values that quick cases take their runs from. */
const TABLE = 1 << 14;

/**
 * The same for who takes few of an op's hundreds of cases: values are runs of one table, and weights are encoded when
 * somebody looks at their bytes.
 */
export function createQuickRandom(seed: number): CaseRandom {
  const random = createCaseRandom(seed), table = random.normal(TABLE);

  function normal(count: number, scale = 1): Float32Array {
    const values = new Float32Array(count);
    for (let at = 0, from = random.integer(0, TABLE - 1); at < count; from = 0) {
      const run = table.subarray(from, from + count - at);
      values.set(run, at);
      at += run.length;
    }
    return scale === 1 ? values : values.map((value) => scale * value);
  }

  return {
    ...random,
    normal,
    input(shape, bindings = {}) {
      const count = elementCount(shape.map((dim) => evaluate(dim, bindings)));
      return { role: "input", dtype: "f32", shape, data: normal(count) };
    },
    weight(format, shape) {
      let bytes: Uint8Array | undefined;
      return {
        ...{ role: "weight", format, shape },
        get bytes() {
          if (bytes) return bytes;
          const made = random.weight(format, shape);
          return bytes = (made as typeof made & { readonly bytes: Uint8Array }).bytes;
        },
      };
    },
  };
}

// Maps: dictionaries from labels to numbers, which exist on the host only.

import { hostArray, setElement } from "../../../ops/host_tensor.ts";
import { bigints, int, text, texts } from "../../derivation/attributes.ts";
import { type HostCall, mlOp, type OnnxOp } from "../../derivation/op.ts";
import type { HostValue, MapValue } from "../../derivation/tensor.ts";
import { type Element, elementsIn, labelsOf, labelVector } from "./labels.ts";
import { rowsOf, rowsOnHost } from "./rows.ts";

const MOST_PLACES = 2 ** 24;

function mapOf({ inputs: [value], node }: HostCall<unknown>): MapValue {
  if (value?.dtype === "map") return value;
  throw new TypeError(`input 0 of ${node.name} must be a map`);
}

const CASTS = ["TO_FLOAT", "TO_STRING", "TO_INT64"] as const;

/** A vector of values cast; strings are read as numbers. */
function castVector(values: readonly Element[], to: string): HostValue {
  const shape = [1, values.length];
  // As C++ writes a float: six digits behind the point.
  if (to === "TO_STRING") {
    const data = values.map((value) => typeof value === "number" ? value.toFixed(6) : `${value}`);
    return { dtype: "string", shape, data };
  }
  const dtype = to === "TO_FLOAT" ? "f32" : "i64";
  const cast = { dtype, shape, data: hostArray(dtype, { count: values.length }) } as const;
  values.forEach((value, index) => {
    const number = typeof value === "string" ? parseFloat(value) : Number(value);
    if (Number.isNaN(number) && typeof value === "string") {
      throw new RangeError(`"${value}" is no number`);
    }
    setElement(cast, { index, value: number });
  });
  return cast;
}

/** Ops that make or read maps. */
export const mlMapOps: readonly OnnxOp[] = [
  /** CastMap: the values in the order of their keys; SPARSE puts each at its key. */
  mlOp("CastMap", {
    attributes: {
      cast_to: text("TO_FLOAT", { choices: CASTS }),
      map_form: text("DENSE", { choices: ["DENSE", "SPARSE"] }),
      max_map: int(1),
    },
    prepare(given) {
      if (given.max_map >= 0 && given.max_map <= MOST_PLACES) return given;
      throw new RangeError(`max_map is ${given.max_map}: must be from 0 to ${MOST_PLACES}`);
    },
    evaluate(call) {
      const { cast_to: to, map_form: form, max_map: size } = call.attributes;
      const { keys, values } = mapOf(call);
      const entries = elementsIn(keys)
        .map((key, i): [number, Element] => [Number(key), values.data[i]!])
        .sort(([a], [b]) => a - b);
      if (form === "DENSE") return [castVector(entries.map(([, value]) => value), to)];
      const lowest = entries[0]?.[0] ?? 0;
      if (!(lowest >= 0)) throw new RangeError(`a map with key ${lowest} has no sparse form`);
      const found = new Map(entries);
      const absent = to === "TO_STRING" ? "0.f" : 0;
      return [castVector(Array.from({ length: size }, (_, i) => found.get(i) ?? absent), to)];
    },
  }),
  /** DictVectorizer: the values of the words of a vocabulary, in its order; 0 for those that are not there. */
  mlOp("DictVectorizer", {
    attributes: { int64_vocabulary: bigints(), string_vocabulary: texts() },
    prepare: (given) => labelsOf(given.string_vocabulary, given.int64_vocabulary),
    evaluate(call) {
      const { keys, values } = mapOf(call);
      const words = labelVector(call.attributes);
      if (words.dtype !== keys.dtype) {
        throw new TypeError(`the vocabulary is ${words.dtype}, and the keys are ${keys.dtype}`);
      }
      const places = new Map(elementsIn(keys).map((key, i) => [key, i]));
      const found = elementsIn(words).map((word) => places.get(word));
      const shape = [1, found.length];
      if (values.dtype === "string") {
        const data = found.map((place) => place === undefined ? "" : values.data[place]!);
        return [{ dtype: "string", shape, data }];
      }
      const data = hostArray(values.dtype, { count: found.length });
      found.forEach((place, i) => {
        if (place !== undefined) data[i] = values.data[place]!;
      });
      return [{ dtype: values.dtype, shape, data }];
    },
  }),
  /** ZipMap: a map for each row. */
  mlOp("ZipMap", {
    attributes: { classlabels_int64s: bigints(), classlabels_strings: texts() },
    prepare(given) {
      const labels = labelsOf(given.classlabels_strings, given.classlabels_int64s);
      if (new Set<string | bigint>(labels).size < labels.length) {
        throw new RangeError("a label is there twice");
      }
      return { keys: labelVector(labels), features: labels.length };
    },
    build: (call) => rowsOnHost(call, call.attributes),
    evaluate(call) {
      const { keys } = call.attributes;
      const { count, width, data } = rowsOf(call, call.attributes);
      const items = Array.from({ length: count }, (_, i): MapValue => {
        const values = Float32Array.from(data.subarray(i * width, (i + 1) * width));
        return { dtype: "map", keys, values: { dtype: "f32", shape: [width], data: values } };
      });
      return [{ dtype: "sequence", items }];
    },
  }),
];

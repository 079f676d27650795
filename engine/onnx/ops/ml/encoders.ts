// Tables from labels to labels, and labels as rows of zeros and a one.

import { elementCount, hostArray, type HostTensor } from "../../../ops/host_tensor.ts";
import {
  bigint,
  bigints,
  flag,
  float,
  floats,
  type OnnxAttributesOf,
  tensor,
  text,
  texts,
} from "../../derivation/attributes.ts";
import { tensorOfFile, valueOfEntry } from "../../derivation/constants.ts";
import { type HostCall, mlOp, type OnnxOp } from "../../derivation/op.ts";
import { type HostValue, isHostTensor, type StringTensor } from "../../derivation/tensor.ts";
import type { OnnxTensor } from "../../file/model.ts";
import { type Element, labelsOf } from "./labels.ts";

type Vector = HostTensor | StringTensor;

/** What stands for what. NaN is found like any key. */
interface Table {
  readonly keyType: Vector["dtype"];
  readonly places: ReadonlyMap<Element, number>;
  readonly values: Vector;
  /** One element. */
  readonly fallback: Vector;
}

/** Input 0 of a node: strings or numbers. */
function inputOf({ inputs: [x], node }: HostCall<unknown>): Vector {
  if (isHostTensor(x) || x?.dtype === "string") return x;
  throw new TypeError(`input 0 of ${node.name} must be a tensor`);
}

// Of keys that are there twice the first counts.
function tableOf(keys: Vector, values: Vector, fallback: Vector): Table {
  if (keys.data.length !== values.data.length) {
    throw new RangeError(`${keys.data.length} keys for ${values.data.length} values`);
  }
  if (fallback.dtype !== values.dtype || fallback.data.length !== 1) {
    throw new RangeError(`the default must be one element of ${values.dtype}, as the values`);
  }
  const places = new Map<Element, number>();
  for (let i = 0; i < keys.data.length; i++) {
    const key = keys.data[i]!;
    if (!places.has(key)) places.set(key, i);
  }
  return { keyType: keys.dtype, places, values, fallback };
}

function lookUp(x: Vector, { keyType, places, values, fallback }: Table): Vector {
  if (x.dtype !== keyType) {
    throw new TypeError(`the input is ${x.dtype}, and the keys are ${keyType}`);
  }
  const { dtype } = values, { shape } = x;
  const at = (i: number) => {
    const place = places.get(x.data[i]!);
    return place === undefined ? fallback.data[0]! : values.data[place]!;
  };
  const count = x.data.length;
  if (dtype === "string") {
    return { dtype, shape, data: Array.from({ length: count }, (_, i) => at(i) as string) };
  }
  const data = hostArray(dtype, { count });
  for (let i = 0; i < count; i++) data[i] = at(i) as number;
  return { dtype, shape, data };
}

function strings(data: readonly string[]): Vector {
  return { dtype: "string", shape: [data.length], data };
}

function integers(data: readonly bigint[]): Vector {
  return { dtype: "i64", shape: [data.length], data: BigInt64Array.from(data) };
}

function numbers(data: readonly number[]): Vector {
  return { dtype: "f32", shape: [data.length], data: Float32Array.from(data) };
}

interface Lists {
  readonly strings?: readonly string[] | undefined;
  readonly int64s?: readonly bigint[] | undefined;
  readonly floats?: readonly number[] | undefined;
  readonly tensor?: OnnxTensor | undefined;
}

/** The only list that is given. */
function onlyList(what: string, given: Lists): Vector {
  const found = Object.values(given).filter((list) => list !== undefined).length;
  if (found !== 1) throw new RangeError(`${what} must be given once: ${found} lists are`);
  if (given.strings) return strings(given.strings);
  if (given.int64s) return integers(given.int64s);
  return given.floats ? numbers(given.floats) : valueOfTensor(given.tensor!);
}

function valueOfTensor(tensor: OnnxTensor): Vector {
  return valueOfEntry(tensorOfFile(tensor)) as Vector;
}

const encoderAttributes = {
  classes_strings: texts(undefined, { until: 1 }),
  default_float: float(-0, { since: 2 }),
  default_int64: bigint(-1n),
  default_string: text("_Unused"),
  default_tensor: tensor(undefined, { since: 4 }),
  keys_floats: floats(undefined, { since: 2 }),
  keys_int64s: bigints(undefined, { since: 2 }),
  keys_strings: texts(undefined, { since: 2 }),
  keys_tensor: tensor(undefined, { since: 4 }),
  values_floats: floats(undefined, { since: 2 }),
  values_int64s: bigints(undefined, { since: 2 }),
  values_strings: texts(undefined, { since: 2 }),
  values_tensor: tensor(undefined, { since: 4 }),
};

/** Tables of a node; version 1 reads its one in both directions. */
function encoderTables(
  given: OnnxAttributesOf<typeof encoderAttributes>,
  version: number,
): Table[] {
  const { default_string: text, default_int64: integer } = given;
  if (version === 1) {
    const classes = given.classes_strings ?? [];
    return bothWays(classes, classes.map((_, i) => BigInt(i)), { text, integer });
  }
  const keys = onlyList("keys", {
    strings: given.keys_strings,
    int64s: given.keys_int64s,
    floats: given.keys_floats,
    tensor: given.keys_tensor,
  });
  const values = onlyList("values", {
    strings: given.values_strings,
    int64s: given.values_int64s,
    floats: given.values_floats,
    tensor: given.values_tensor,
  });
  if (given.default_tensor) return [tableOf(keys, values, valueOfTensor(given.default_tensor))];
  return [
    tableOf(keys, values, defaultOf(values.dtype, { text, integer, real: given.default_float })),
  ];
}

function defaultOf(
  dtype: Vector["dtype"],
  { text, integer, real }: {
    readonly text: string;
    readonly integer: bigint;
    readonly real: number;
  },
): Vector {
  if (dtype === "string") return strings([text]);
  if (dtype === "i64") return integers([integer]);
  const data = hostArray(dtype, { count: 1 });
  data[0] = dtype.startsWith("f") ? real : Number(integer);
  return { dtype, shape: [1], data };
}

function bothWays(
  names: readonly string[],
  numbers: readonly bigint[],
  { text, integer }: { readonly text: string; readonly integer: bigint },
): Table[] {
  return [
    tableOf(strings(names), integers(numbers), integers([integer])),
    tableOf(integers(numbers), strings(names), strings([text])),
  ];
}

function lookUpInput(call: HostCall<readonly Table[]>): HostValue[] {
  const x = inputOf(call);
  const tables = call.attributes;
  return [lookUp(x, tables.find(({ keyType }) => keyType === x.dtype) ?? tables[0]!)];
}

/** Categories by element: integers, also of floats, which are cut. */
function categoryAt(x: Vector, i: number): Element {
  const element = x.data[i]!;
  if (typeof element !== "number") return element;
  return Number.isFinite(element) ? BigInt(Math.trunc(element)) : element;
}

/** Encoders. */
export const mlEncoderOps: readonly OnnxOp[] = [
  /** CategoryMapper: strings to integers, or back. */
  mlOp("CategoryMapper", {
    attributes: {
      cats_int64s: bigints([]),
      cats_strings: texts([]),
      default_int64: bigint(-1n),
      default_string: text("_Unused"),
    },
    prepare: ({ cats_strings, cats_int64s, default_string: text, default_int64: integer }) =>
      bothWays(cats_strings, cats_int64s, { text, integer }),
    evaluate: lookUpInput,
  }),
  mlOp("LabelEncoder", {
    versions: [1, 2, 4],
    attributes: encoderAttributes,
    prepare: encoderTables,
    evaluate: lookUpInput,
  }),
  /** OneHotEncoder: a last dim of the categories. */
  mlOp("OneHotEncoder", {
    attributes: { cats_int64s: bigints(), cats_strings: texts(), zeros: flag(true) },
    prepare({ cats_strings, cats_int64s, zeros }) {
      const labels = labelsOf(cats_strings, cats_int64s);
      // Of a category that is there twice the last counts.
      const columns = new Map<Element, number>();
      labels.forEach((label, column) => columns.set(label, column));
      return { columns, width: labels.length, takesUnknown: zeros };
    },
    evaluate(call) {
      const { columns, width, takesUnknown } = call.attributes;
      const x = inputOf(call), count = elementCount(x.shape);
      const data = new Float32Array(count * width);
      for (let i = 0; i < count; i++) {
        const column = columns.get(categoryAt(x, i));
        if (column !== undefined) data[i * width + column] = 1;
        else if (!takesUnknown) throw new RangeError(`${x.data[i]} is none of the categories`);
      }
      return [{ dtype: "f32", shape: [...x.shape, width], data }];
    },
  }),
];

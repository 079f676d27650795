// The allow-list of torch checkpoints, and what its names build. This is the whole of it: containers,
// the two functions by which torch rebuilds tensors, parameters, and storage classes that say an element
// type. Old and new files of torch.save need no more as long as they hold tensors and plain data.

import { COUNT } from "../../record.ts";
import { formats } from "../../../quant/mod.ts";
import { scalars } from "../scalars.ts";
import {
  asKind,
  type PickleDict,
  type PickleGlobal,
  type PickleValue,
  type TorchStorage,
} from "./values.ts";

const STORAGE_FORMATS: Readonly<Record<string, string>> = {
  FloatStorage: "F32",
  HalfStorage: "F16",
  BFloat16Storage: "BF16",
  DoubleStorage: "F64",
  LongStorage: "I64",
  IntStorage: "I32",
  ShortStorage: "I16",
  CharStorage: "I8",
  ByteStorage: "U8",
  BoolStorage: "BOOL",
  ComplexFloatStorage: "C64",
  Float8_e4m3fnStorage: "F8_E4M3",
  Float8_e5m2Storage: "F8_E5M2",
  UInt16Storage: "U16",
  UInt32Storage: "U32",
  UInt64Storage: "U64",
  UntypedStorage: "U8",
};

/** The allow-list, by `module.name`. */
export const TORCH_GLOBALS: ReadonlyMap<string, PickleGlobal> = new Map(
  [
    callable("collections.OrderedDict", orderedDict),
    callable("torch.Size", ([items]) => need(asKind(items, "tuple"), "a torch.Size has no sizes")),
    // (storage, offset, size, stride, requires_grad, hooks[, metadata]); the older one ends with stride.
    callable("torch._utils._rebuild_tensor_v2", rebuildTensor),
    callable("torch._utils._rebuild_tensor", rebuildTensor),
    // (data, requires_grad, hooks)
    callable(
      "torch._utils._rebuild_parameter",
      ([data]) => need(asKind(data, "tensor"), "a parameter has no tensor"),
    ),
    ...Object.entries(STORAGE_FORMATS).flatMap(([name, format]) => [
      storageClass(`torch.${name}`, format),
      storageClass(`torch.storage.${name}`, format),
    ]),
  ].map((row) => [row.name, row]),
);

function callable(
  name: string,
  call: (args: readonly PickleValue[]) => PickleValue,
): PickleGlobal {
  return { kind: "global", name, call };
}

function storageClass(name: string, format: string): PickleGlobal {
  const { blockBytes } = (formats.get(format) ?? scalars.get(format))!;
  return { kind: "global", name, storage: { format, width: blockBytes } };
}

function need<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new TypeError(message);
  return value;
}

/** Without arguments, or from a list of pairs as Python 2 wrote it. */
function orderedDict(args: readonly PickleValue[]): PickleDict {
  const entries = new Map<PickleValue, PickleValue>();
  const list = args.length === 0 ? [] : need(asKind(args[0], "list"), "no list of pairs").items;
  for (const item of list) {
    const pair = asKind(item, "tuple")?.items ?? asKind(item, "list")?.items;
    if (pair?.length !== 2) {
      throw new TypeError("an OrderedDict is made of something else than pairs");
    }
    entries.set(pair[0], pair[1]);
  }
  return { kind: "dict", entries, isOrdered: true };
}

function rebuildTensor(args: readonly PickleValue[]): PickleValue {
  const storage = need(asKind(args[0], "storage"), "a tensor has no storage");
  if (args.length < 4) throw new TypeError(`a tensor is rebuilt from ${args.length} values`);
  return { kind: "tensor", storage, offset: args[1], size: args[2], stride: args[3] };
}

/**
 * The storage that a persistent id means: `("storage", class, key, device, elements)`, in legacy files
 * with a sixth item, which is None or `(key of the view, first element, elements)`.
 */
export function storageOfId(id: PickleValue): TorchStorage | undefined {
  const items = asKind(id, "tuple")?.items;
  if (items === undefined || items.length < 5 || items[0] !== "storage") return undefined;
  const type = asKind(items[1], "global")?.storage;
  const [key, stored] = [items[2], items[4]];
  if (!type || typeof key !== "string" || !COUNT.accepts(stored)) return undefined;
  const whole = { kind: "storage", key, ...type, stored, first: 0, elements: stored } as const;
  const view = asKind(items[5], "tuple")?.items;
  if (view === undefined) return items[5] === undefined || items[5] === null ? whole : undefined;
  const [, first, elements] = view;
  const fits = COUNT.accepts(first) && COUNT.accepts(elements) && first + elements <= stored;
  return fits ? { ...whole, first, elements } : undefined;
}

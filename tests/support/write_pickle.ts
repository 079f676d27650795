// Writes pickles for tests, opcode by opcode, and checkpoints around them. Only what torch.save writes has
// a helper; anything else is bytes.

import { joinBytes } from "./write_gguf.ts";
import { writeZip } from "./write_zip.ts";

/** A piece of a pickle: text stands for its bytes. */
export type PicklePart = string | Uint8Array | readonly PicklePart[];

const UTF8 = new TextEncoder();

/** Bytes of all parts, one character a byte where they are text. */
export function pickleBytes(...parts: readonly PicklePart[]): Uint8Array<ArrayBuffer> {
  const flat = parts.flatMap((part): Uint8Array[] => {
    if (typeof part === "string") return [Uint8Array.from(part, (char) => char.charCodeAt(0))];
    return part instanceof Uint8Array ? [part] : [pickleBytes(...part)];
  });
  return joinBytes(flat);
}

/** A text value. */
export function text(value: string): Uint8Array {
  const bytes = UTF8.encode(value);
  return pickleBytes("X", new Uint8Array(Uint32Array.of(bytes.length).buffer), bytes);
}

/** An integer of 32 bits. */
export function int(value: number): Uint8Array {
  return pickleBytes("J", new Uint8Array(Int32Array.of(value).buffer));
}

/** A tuple of values. */
export function tuple(...items: readonly PicklePart[]): PicklePart {
  return ["(", ...items, "t"];
}

/** A dict of text keys. */
export function dict(items: Readonly<Record<string, PicklePart>>): PicklePart {
  return ["}(", ...Object.entries(items).map(([key, value]) => [text(key), value]), "u"];
}

/** A tensor as torch describes it; `view` is the sixth item of ids in legacy files. */
export function tensor(options: {
  readonly type?: string;
  readonly key?: string;
  readonly stored: number;
  readonly offset?: number;
  readonly size: readonly number[];
  readonly stride: readonly number[];
  readonly view?: PicklePart;
}): PicklePart {
  const { type = "FloatStorage", key = "0", stored, offset = 0, size, stride, view } = options;
  const id = tuple(
    text("storage"),
    `ctorch\n${type}\n`,
    text(key),
    text("cpu"),
    int(stored),
    ...(view === undefined ? [] : [view]),
  );
  return [
    "ctorch._utils\n_rebuild_tensor_v2\n",
    tuple(
      [id, "Q"],
      int(offset),
      tuple(...size.map(int)),
      tuple(...stride.map(int)),
      "\x89",
      "ccollections\nOrderedDict\n)R",
    ),
    "R",
  ];
}

/** A zip checkpoint. */
export function writeTorchZip(
  root: PicklePart,
  storages: Readonly<Record<string, Uint8Array>>,
): Uint8Array<ArrayBuffer> {
  return writeZip([
    { name: "a/data.pkl", data: pickleBytes("\x80\x02", root, "."), stored: true },
    { name: "a/byteorder", data: UTF8.encode("little"), stored: true },
    ...Object.entries(storages).map(([key, data]) => ({
      name: `a/data/${key}`,
      data,
      stored: true,
    })),
  ]);
}

/** A legacy checkpoint. */
export function writeTorchLegacy(
  root: PicklePart,
  storages: readonly {
    readonly key: string;
    readonly elements: number;
    readonly data: Uint8Array;
  }[],
): Uint8Array<ArrayBuffer> {
  return pickleBytes(
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
    "\x80\x02M\xe9\x03.",
    ["\x80\x02", dict({ little_endian: "\x88" }), "."],
    ["\x80\x02", root, "."],
    ["\x80\x02](", ...storages.map(({ key }) => text(key)), "e."],
    ...storages.map(({ elements, data }) =>
      pickleBytes(new Uint8Array(BigUint64Array.of(BigInt(elements)).buffer), data)
    ),
  );
}

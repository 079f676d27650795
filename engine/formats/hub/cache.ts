// The folder of fetched models. Each model has one folder in it, named after its source, with its files
// and `model.json`, which is written last: a model without it is not complete. So a look into the cache
// needs no network, no lock and no hash.

import { builtin } from "../../builtin.ts";
import { ResourceError, SourceError } from "../../errors.ts";
import { readEnv } from "../../io.ts";
import { tryAcquireLock } from "./lock.ts";

/** What model.json says. */
export interface CacheRecord {
  /** The model's name, as given to pull. */
  readonly source: string;
  /** File to open. */
  readonly main: string;
  /** Every file with its length and hash. */
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly sha256: string;
  }[];
  /** When it was fetched, ISO 8601. */
  readonly fetched: string;
}

/** A model in the cache, complete or not. */
export interface CacheEntry {
  /** The model's name, as given to pull. */
  readonly source: string;
  /** Where its files are. */
  readonly folder: string;
  /** Path of the file to open; undefined while incomplete. */
  readonly path: string | undefined;
  /** Bytes on disk, partial files included. */
  readonly bytes: number;
  /** Whether all files are there. */
  readonly complete: boolean;
  /** When it was fetched, ISO 8601; undefined while incomplete. */
  readonly fetched: string | undefined;
}

const RECORD = "model.json";
const SOURCE = "source.txt";
const LOCK = "lock";

/**
 * The cache folder: `$TROODON_CACHE`, else `troodon` in the system's cache folder.
 *
 * @throws {SourceError} If the environment says nothing or may not be read.
 */
export function cacheFolder(given?: string): string {
  const folder = given ?? readEnv("TROODON_CACHE") ?? systemCache();
  if (folder !== undefined) return folder;
  const isDenied =
    Deno.permissions.querySync({ name: "env", variable: "HOME" }).state !== "granted";
  throw new SourceError("cannot tell where the model cache is", {
    remedy: isDenied
      ? "Run with --allow-env=TROODON_CACHE,XDG_CACHE_HOME,HOME,LOCALAPPDATA, or give cacheDir"
      : "The environment names no folder: set TROODON_CACHE, or give cacheDir",
  });
}

/** Path of a file that is kept beside the models; undefined where nobody may look where that is. */
export function cacheFile(name: string, cacheDir: string | undefined): string | undefined {
  try {
    return `${cacheFolder(cacheDir)}/${name}`;
  } catch {
    return undefined;
  }
}

function systemCache(): string | undefined {
  if (Deno.build.os === "windows") {
    const local = readEnv("LOCALAPPDATA");
    return local && `${local}\\troodon`;
  }
  const xdg = readEnv("XDG_CACHE_HOME");
  if (xdg) return `${xdg}/troodon`;
  const home = readEnv("HOME");
  if (!home) return undefined;
  return Deno.build.os === "darwin" ? `${home}/Library/Caches/troodon` : `${home}/.cache/troodon`;
}

/** Folder of a source: readable, and unique by the first digits of its hash. */
export function entryFolder(cache: string, source: string): string {
  const readable = source.replace(/[^\w.-]+/g, "_").replace(/^[._]+/, "").slice(-80);
  const digest = builtin("node:crypto").createHash("sha256").update(source).digest("hex").slice(
    0,
    12,
  );
  return `${cache}/${readable}-${digest}`;
}

/** Path of the lock of an entry. */
export function lockPath(folder: string): string {
  return `${folder}/${LOCK}`;
}

/** The record of a complete model whose files are all there with their lengths, or undefined. */
export function readRecord(folder: string): CacheRecord | undefined {
  const record = ifThere(
    folder,
    (): CacheRecord => JSON.parse(Deno.readTextFileSync(`${folder}/${RECORD}`)),
  );
  const whole = record?.files.every(({ name, bytes }) => fileSize(`${folder}/${name}`) === bytes);
  return whole ? record : undefined;
}

/** Makes the folder of a model that is going to be fetched. */
export function beginEntry(folder: string, source: string): void {
  try {
    Deno.mkdirSync(folder, { recursive: true });
    Deno.writeTextFileSync(`${folder}/${SOURCE}`, source);
  } catch (error) {
    throw describeDenied(error, folder);
  }
}

/** Takes the folder of a model away again where nothing came that another try could go on from. */
export function endEntry(folder: string): void {
  const kept = [...Deno.readDirSync(folder)].some(({ name, isDirectory }) =>
    name !== SOURCE && name !== LOCK &&
    (isDirectory ? folderBytes(`${folder}/${name}`) : fileSize(`${folder}/${name}`) ?? 0) > 0
  );
  if (!kept) Deno.removeSync(folder, { recursive: true });
}

/** Declares a model complete. */
export async function writeRecord(folder: string, record: CacheRecord): Promise<void> {
  const fresh = `${folder}/${RECORD}.new`;
  await Deno.writeTextFile(fresh, JSON.stringify(record, undefined, 2) + "\n");
  await Deno.rename(fresh, `${folder}/${RECORD}`);
}

/** All models in the cache, by name. */
export function listCache(cacheDir?: string): CacheEntry[] {
  const cache = cacheFolder(cacheDir);
  const entries = ifThere(cache, () => [...Deno.readDirSync(cache)]) ?? [];
  return entries.filter(({ isDirectory }) => isDirectory)
    .flatMap(({ name }) => readEntry(`${cache}/${name}`) ?? [])
    .sort((a, b) => a.source < b.source ? -1 : 1);
}

/**
 * Removes a model from the cache, partial files included.
 *
 * @param source Its name as `listCache` gives it.
 * @returns The bytes that became free.
 * @throws {SourceError} If it is not in the cache, or being fetched right now.
 */
export async function removeFromCache(source: string, cacheDir?: string): Promise<number> {
  const folder = entryFolder(cacheFolder(cacheDir), source);
  const entry = readEntry(folder);
  if (!entry) {
    throw new SourceError("is not in the cache", {
      file: source,
      remedy: "`troodon list` shows what is",
    });
  }
  try {
    using lock = await tryAcquireLock(lockPath(folder));
    if (!lock) {
      throw new SourceError("is being fetched by another process", {
        file: source,
        remedy: "Stop that one first",
      });
    }
    await Deno.remove(folder, { recursive: true });
  } catch (error) {
    throw describeDenied(error, folder);
  }
  return entry.bytes;
}

function readEntry(folder: string): CacheEntry | undefined {
  let source: string;
  try {
    source = Deno.readTextFileSync(`${folder}/${SOURCE}`);
  } catch {
    return undefined; // not a folder of ours
  }
  const record = readRecord(folder);
  return {
    source,
    folder,
    path: record && `${folder}/${record.main}`,
    bytes: folderBytes(folder),
    complete: record !== undefined,
    fetched: record?.fetched,
  };
}

function folderBytes(folder: string): number {
  let bytes = 0;
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    bytes += isDirectory ? folderBytes(`${folder}/${name}`) : fileSize(`${folder}/${name}`) ?? 0;
  }
  return bytes;
}

function fileSize(path: string): number | undefined {
  return ifThere(path, () => Deno.statSync(path).size);
}

/** What is read at a path; undefined where there is nothing, or no JSON. */
function ifThere<T>(path: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof SyntaxError) return undefined;
    throw describeDenied(error, path);
  }
}

function describeDenied(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof Deno.errors.NotCapable) {
    return new SourceError("Deno may not use the model cache", {
      file: path,
      remedy: `Run with --allow-read=${path} (and --allow-write=${path} to fetch models)`,
      cause: error,
    });
  }
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new ResourceError("the disk is full", {
      file: path,
      remedy: "Make room or set TROODON_CACHE to another disk",
      cause: error,
    });
  }
  if (error instanceof Deno.errors.PermissionDenied || code === "EROFS") {
    return new SourceError("the system does not let us write there", {
      file: path,
      remedy: "Set TROODON_CACHE or cacheDir to a folder of your own",
      cause: error,
    });
  }
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
    return new SourceError("no folder for models can be made there", {
      file: path,
      remedy: "Set TROODON_CACHE or cacheDir to a folder that can be written",
      cause: error,
    });
  }
  return error;
}

// A file of a web server in the origin's private file system (OPFS), fetched by ranges and mounted. Beside it lies a note with
// the sum of every piece that has come: a fetch that was broken off goes on behind it, and a file that is there is compared
// with its note before it is used, so that a piece that was changed, and no other, is fetched again. What the browser has
// evicted is fetched as if it had never been there.

import { FormatError, ResourceError, SourceError } from "../../errors.ts";
import { isMissing } from "../../io.ts";
import { unescaped } from "../../percent.ts";
import { ERRORS } from "../error_classes.ts";
import { mount, openSyncHandle, type SyncHandle, unmount } from "./files.ts";
import { Sha256 } from "./sha256.ts";

/**
 * How a file is fetched, and where it is kept.
 * @category Browser
 */
export interface FetchFileOptions {
  /** The folder; default: `troodon` in the origin's private file system. */
  readonly directory?: FileSystemDirectoryHandle;
  /** Default: the browser's. */
  readonly fetch?: typeof fetch;
  /** What the whole file must be, hexadecimal. */
  readonly sha256?: string;
  /** Name to mount it by, below the folder's; default: the last part of the address. */
  readonly name?: string;
  /** Stops the fetch; what has come is kept. */
  readonly signal?: AbortSignal;
  /** Called as bytes are compared or come. */
  readonly onProgress?: (progress: FetchFileProgress) => void;
  /** Bytes of a piece; default 4 MiB. */
  readonly pieceBytes?: number;
  /** Tries of one piece; default 4. */
  readonly attempts?: number;
}

/**
 * How far it is.
 * @category Browser
 */
export interface FetchFileProgress {
  /** Whether stored pieces are compared with their sums, or missing ones fetched. */
  readonly phase: "verify" | "download";
  /** Its name. */
  readonly file: string;
  /** Bytes that are done. */
  readonly received: number;
  /** Bytes of all. */
  readonly total: number;
}

/** What lies beside a file. */
interface Note {
  readonly url: string;
  readonly etag: string | null;
  readonly bytes: number;
  readonly pieceBytes: number;
  /** By piece, its sum, or null where it is missing. */
  readonly pieces: (string | null)[];
  /** Whether the whole was what it must be. */
  isWhole: boolean;
}

const QUOTA = "QuotaExceededError";
const PIECE = 4 << 20;
const ROOT = "/troodon";

/** The folder of this origin. */
async function ownFolder(): Promise<FileSystemDirectoryHandle> {
  const root = await navigator.storage.getDirectory();
  return await root.getDirectoryHandle("troodon", { create: true });
}

const sumOf = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();

/**
 * Fetches a file, or what is missing of it, checks it, and mounts it.
 *
 * @returns Its path, for `load` and `loadGraph`.
 * @throws {SourceError} If the server does not give it. @throws {ResourceError} If there is no room for it.
 * @throws {FormatError} If it is not what `sha256` says; nothing of it is kept.
 *
 * @example
 * ```ts ignore
 * import { fetchFile, load } from "troodon/browser";
 *
 * const path = await fetchFile("https://example.com/model.gguf", {
 *   onProgress: ({ phase, received, total }) => postMessage({ phase, received, total }),
 * });
 * const model = await load(path);
 * ```
 * @category Browser
 */
export async function fetchFile(
  url: string | URL,
  options: FetchFileOptions = {},
): Promise<string> {
  const address = new URL(url, globalThis.location?.href).href;
  const name = options.name ?? unescaped(new URL(address).pathname.split("/").at(-1)!);
  const path = `${ROOT}/${name}`;
  unmount(path);
  const folder = options.directory ?? await ownFolder();
  const stored = name.replaceAll("/", "__");
  const file = heldFile(path, options.directory) ?? await takeFile(folder, { stored, path });
  held.set(path, { file, directory: options.directory });
  try {
    const notes = new Notes(folder, `${stored}.note`);
    await new Fetching(file, { ...options, address, path, notes }).run();
    mount(path, file);
    return path;
  } catch (error) {
    letGo(path);
    throw error;
  }
}

/** Files that this worker has open, by path: nobody can open them a second time, this worker neither. */
const held = new Map<string, {
  readonly file: SyncHandle;
  readonly directory: FileSystemDirectoryHandle | undefined;
}>();

/** The file that is open already, where it is that of the same folder. */
function heldFile(
  path: string,
  directory: FileSystemDirectoryHandle | undefined,
): SyncHandle | undefined {
  const one = held.get(path);
  if (one?.directory === directory) return one?.file;
  letGo(path);
  return undefined;
}

function letGo(path: string): void {
  held.get(path)?.file.close();
  held.delete(path);
}

async function takeFile(
  folder: FileSystemDirectoryHandle,
  { stored, path }: { readonly stored: string; readonly path: string },
): Promise<SyncHandle> {
  const handle = await folder.getFileHandle(stored, { create: true });
  return await openSyncHandle(handle).catch((cause) => {
    throw new ResourceError("the file is in use, by another tab or worker", {
      file: path,
      remedy: "Close the other one",
      cause,
    });
  });
}

/** What a checkpoint of Hugging Face's may have beside its weights. */
const COMPANIONS = [
  ...["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"],
  ...["special_tokens_map.json", "vocab.txt", "tokenizer.model", "chat_template.jinja"],
  ...["modules.json", "sentence_bert_config.json", "1_Pooling/config.json"],
  "preprocessor_config.json",
];

/**
 * Fetches a folder of files: the weights, and of the others those that are there.
 *
 * @param weights Names of files that must be there.
 * @returns Its path, for `load`.
 * @throws As {@linkcode fetchFile}.
 *
 * @example
 * ```ts ignore
 * import { fetchFolder, load } from "troodon/browser";
 *
 * const model = await load(await fetchFolder("https://example.com/checkpoint/"));
 * ```
 * @category Browser
 */
export async function fetchFolder(
  url: string | URL,
  { weights = ["model.safetensors"], ...options }:
    & Omit<FetchFileOptions, "sha256" | "name">
    & { readonly weights?: readonly string[] } = {},
): Promise<string> {
  const base = new URL(`${url}`.replace(/\/?$/, "/"), globalThis.location?.href);
  const folder = base.pathname.split("/").at(-2) || "model";
  const one = (name: string) =>
    fetchFile(new URL(name, base), { ...options, name: `${folder}/${name}` });
  for (const name of weights) await one(name);
  for (const name of COMPANIONS) {
    try {
      await one(name);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await removeFile(`${folder}/${name}`, options.directory);
    }
  }
  return `${ROOT}/${folder}`;
}

/**
 * Takes a fetched file out of the origin's storage.
 *
 * @example
 * ```ts ignore
 * import { fetchFile, removeFile } from "troodon/browser";
 *
 * await fetchFile("https://example.com/model.gguf", { name: "model.gguf" });
 * await removeFile("model.gguf");
 * ```
 * @category Browser
 */
export async function removeFile(
  name: string,
  directory?: FileSystemDirectoryHandle,
): Promise<void> {
  const folder = directory ?? await ownFolder();
  unmount(`${ROOT}/${name}`);
  letGo(`${ROOT}/${name}`);
  const stored = name.replaceAll("/", "__");
  for (const entry of [stored, `${stored}.note`]) await folder.removeEntry(entry).catch(() => {});
}

/** Reads and writes a note. */
class Notes {
  readonly #folder: FileSystemDirectoryHandle;
  readonly #name: string;

  constructor(folder: FileSystemDirectoryHandle, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  async read(): Promise<Note | undefined> {
    try {
      const handle = await this.#folder.getFileHandle(this.#name);
      return JSON.parse(await (await handle.getFile()).text());
    } catch {
      return undefined;
    }
  }

  async write(note: Note): Promise<void> {
    const handle = await this.#folder.getFileHandle(this.#name, { create: true });
    const file = await openSyncHandle(handle);
    try {
      const bytes = new TextEncoder().encode(JSON.stringify(note));
      file.truncate(0);
      file.write(bytes, { at: 0 });
      file.flush();
    } finally {
      file.close();
    }
  }
}

interface FetchingOptions extends FetchFileOptions {
  readonly address: string;
  readonly path: string;
  readonly notes: Notes;
}

/** One file under way. */
class Fetching {
  readonly #file: SyncHandle;
  readonly #options: FetchingOptions;
  #note!: Note;

  constructor(file: SyncHandle, options: FetchingOptions) {
    this.#file = file;
    this.#options = options;
  }

  async run(): Promise<void> {
    const known = await this.#options.notes.read();
    if (known && known.url === this.#options.address) {
      this.#note = known;
      await this.#verify();
      if (known.isWhole && this.#missing() < 0) return;
    }
    await this.#begin(known);
    for (let piece = this.#missing(); piece >= 0; piece = this.#missing()) await this.#fetch(piece);
    this.#checkWhole();
    this.#note.isWhole = true;
    await this.#keep();
  }

  #missing(): number {
    return this.#note.pieces.indexOf(null);
  }

  #lengthOf(piece: number): number {
    const { bytes, pieceBytes } = this.#note;
    return Math.min(pieceBytes, bytes - piece * pieceBytes);
  }

  /** Compares what is there with the note, and forgets what differs: it is fetched again. */
  async #verify(): Promise<void> {
    const { pieces, pieceBytes } = this.#note;
    for (const [piece, sum] of pieces.entries()) {
      if (sum === null) continue;
      const bytes = new Uint8Array(this.#lengthOf(piece));
      const count = this.#file.read(bytes, { at: piece * pieceBytes });
      if (count < bytes.length || await sumOf(bytes) !== sum) pieces[piece] = null;
      this.#report("verify", piece);
    }
  }

  /** Asks the server what the file is; another one than is noted begins anew. */
  async #begin(known: Note | undefined): Promise<void> {
    const response = await this.#request([0, 1]);
    await response.body?.cancel();
    const range = /^bytes 0-0\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
    const bytes = Number(range?.[1] ?? response.headers.get("content-length") ?? Number.NaN);
    if (!Number.isSafeInteger(bytes)) {
      throw new SourceError("the server does not say how long the file is", {
        file: this.#options.address,
        remedy: "Serve it with content-length, and with ranges if it is large",
      });
    }
    const etag = response.headers.get("etag");
    const isSame = known?.url === this.#options.address && known.bytes === bytes &&
      known.etag === etag;
    if (!isSame) {
      const pieceBytes = this.#options.pieceBytes ?? PIECE;
      const pieces = new Array<null>(Math.ceil(bytes / pieceBytes)).fill(null);
      this.#note = {
        ...{ url: this.#options.address, etag, bytes, pieceBytes, pieces, isWhole: false },
      };
    }
    await this.#makeRoom(bytes);
  }

  async #makeRoom(bytes: number): Promise<void> {
    try {
      this.#file.truncate(bytes);
      // Chromium cuts a file to what is left of the quota, without an error.
      if (this.#file.getSize() < bytes) throw new DOMException("cut", QUOTA);
    } catch (error) {
      throw await this.#full(error);
    }
    await this.#keep();
  }

  async #keep(): Promise<void> {
    try {
      await this.#options.notes.write(this.#note);
    } catch (error) {
      throw await this.#full(error);
    }
  }

  async #fetch(piece: number): Promise<void> {
    const { attempts = 4, signal } = this.#options;
    for (let tries = 1;; tries++) {
      signal?.throwIfAborted();
      try {
        return await this.#fetchOnce(piece);
      } catch (error) {
        signal?.throwIfAborted();
        // What the network does may pass; `fetch` says TypeError.
        if (!(error instanceof TypeError)) throw error;
        if (tries >= attempts) {
          throw new SourceError(`the connection failed (${error.message})`, {
            file: this.#options.address,
            remedy: "Try again: what has come is kept",
            cause: error,
          });
        }
        await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));
      }
    }
  }

  /** Fetches a piece, or from a server that knows no ranges the whole file, of which missing pieces are taken. */
  async #fetchOnce(piece: number): Promise<void> {
    const { pieceBytes, bytes } = this.#note;
    const start = piece * pieceBytes;
    const response = await this.#request([start, start + this.#lengthOf(piece)]);
    const isPart = response.status === 206;
    const last = isPart ? piece : this.#note.pieces.length - 1;
    let next = isPart ? piece : 0, filled = 0, buffer = new Uint8Array(this.#lengthOf(next));
    for await (const chunk of chunksOf(response)) {
      for (let at = 0; at < chunk.length;) {
        if (next > last) throw this.#otherLength(bytes);
        const part = chunk.subarray(at, at + buffer.length - filled);
        buffer.set(part, filled);
        [at, filled] = [at + part.length, filled + part.length];
        if (filled < buffer.length) continue;
        await this.#store(next++, buffer);
        [filled, buffer] = [0, new Uint8Array(Math.max(0, this.#lengthOf(next)))];
      }
    }
    if (next <= last) throw new TypeError(`it ended after ${filled} bytes of piece ${next}`);
  }

  #otherLength(bytes: number): Error {
    return new SourceError(`the server sent more than the ${bytes} bytes that it said`, {
      file: this.#options.address,
    });
  }

  async #store(piece: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#note.pieces[piece] === null) {
      try {
        const count = this.#file.write(bytes, { at: piece * this.#note.pieceBytes });
        if (count < bytes.length) throw new DOMException("written in part", QUOTA);
      } catch (error) {
        throw await this.#full(error);
      }
      this.#note.pieces[piece] = await sumOf(bytes);
      await this.#keep();
    }
    this.#report("download", piece);
  }

  #report(phase: FetchFileProgress["phase"], piece: number): void {
    const { bytes: total, pieceBytes } = this.#note;
    const received = Math.min(total, (piece + 1) * pieceBytes);
    this.#options.onProgress?.({ phase, file: this.#options.path, received, total });
  }

  #checkWhole(): void {
    const { sha256, path } = this.#options;
    if (sha256 === undefined) return;
    const sum = new Sha256(), buffer = new Uint8Array(1 << 20);
    for (let at = 0; at < this.#note.bytes;) {
      const count = this.#file.read(buffer, { at });
      sum.update(buffer.subarray(0, count));
      at += count;
    }
    const found = sum.digest();
    if (found === sha256.toLowerCase()) return;
    this.#file.truncate(0);
    throw new FormatError(`has the sha256 ${found}, must have ${sha256}`, {
      file: path,
      remedy: "The bytes are wrong and were removed: use another source",
    });
  }

  async #request([start, end]: readonly [number, number]): Promise<Response> {
    const { address, signal, fetch = globalThis.fetch } = this.#options;
    const response = await fetch(address, {
      headers: { range: `bytes=${start}-${end - 1}` },
      ...signal && { signal },
    });
    if (response.ok) return response;
    await response.body?.cancel();
    if (response.status >= 500 || response.status === 429) {
      throw new TypeError(`the server answers ${response.status}`);
    }
    throw new SourceError(`the server does not give the file (${response.status})`, {
      file: address,
      remedy: "Check the address, and that the server allows this origin (CORS)",
      ...response.status === 404 && { cause: new ERRORS.NotFound(address) },
    });
  }

  /** Names a full quota; passes other errors on. */
  async #full(error: unknown): Promise<unknown> {
    if ((error as { name?: string }).name !== QUOTA) return error;
    const { storage } = navigator as { readonly storage?: StorageManager };
    const { quota = 0, usage = 0 } = await storage?.estimate() ?? {};
    return new ResourceError(
      `the browser has no room for the ${this.#note.bytes} bytes of the file: ${usage} of ${quota} ` +
        "are used by this site",
      {
        file: this.#options.path,
        remedy: "Remove other models, or make room on the disk; what has come is kept",
        cause: error,
      },
    );
  }
}

async function* chunksOf(response: Response): AsyncGenerator<Uint8Array> {
  const reader = response.body!.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

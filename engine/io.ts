// The door between the engine and the machine's files and environment: what else may say `Deno` stands in
// tools/lint_plugin.ts, so that permissions are asked for at one spot and the rest also runs from memory.
// Reads are synchronous: they land straight in the target, which may be a view over shared WASM memory,
// and that is the fastest way Deno offers (ARCHITECTURE.md, measured facts).

import type { ByteSource } from "./byte_source.ts";
import { FormatError, SourceError } from "./errors.ts";
import { folderOf, readError, writeError } from "./file_errors.ts";
import { unescaped } from "./percent.ts";

/** The path that a `file://` URL means, as text or as an object; other names as they are, other URLs as text. */
export function pathOf(name: string | URL): string {
  if (typeof name !== "string" && !(name instanceof URL)) {
    throw new TypeError("Cannot open it: give a path, a URL or the name of a model");
  }
  const url = typeof name !== "string" ? name : /^file:/i.test(name) ? URL.parse(name) : null;
  if (!url) return name as string;
  if (url.protocol !== "file:") return url.href;
  const path = unescaped(url.pathname);
  return Deno.build.os === "windows" ? path.replace(/^\/(?=[A-Za-z]:)/, "") : path;
}

/** Fewer bytes are read sooner by this thread than another is told and tells, which takes 0.2 ms. */
const WORTH_BESIDE = 2 << 20;

/**
 * Opens a local file for random access.
 *
 * @throws {SourceError} If it does not exist, is not a plain file, or may not be read.
 */
export function openFile(path: string): ByteSource {
  const file = reading(path, () => Deno.openSync(path, { read: true }));
  let size: number;
  let identity: string;
  try {
    const info = file.statSync();
    if (!info.isFile) {
      throw new SourceError(info.isDirectory ? "is a folder, not a file" : "is not a plain file", {
        file: path,
        remedy: info.isDirectory ? "Give the path of a file in it" : "Copy it to a file first",
      });
    }
    size = info.size;
    identity = identityOf(path, info);
  } catch (error) {
    file.close();
    throw error;
  }
  let open = true, isReading = false;
  let second: Deno.FsFile | "none" | undefined;

  function check(offset: number, { length }: Uint8Array): void {
    if (!open) throw new TypeError(`Cannot read ${path}: it is closed`);
    checkRange(path, { size, offset, length });
  }

  /** Bytes that were read. @throws {FormatError} If those were all. */
  function some(count: number | null, at: number): number {
    if (count) return count;
    throw new FormatError(
      `the file ends here although it was ${size} bytes long when opened`,
      { file: path, place: `byte ${at}`, remedy: "Fetch or copy it again" },
    );
  }

  /** The same file once more, if that asks nobody. */
  function again(): Deno.FsFile | "none" {
    if (Deno.permissions.querySync({ name: "read", path }).state !== "granted") return "none";
    try {
      const other = Deno.openSync(path);
      if (identityOf(path, other.statSync()) === identity) return other;
      other.close();
    } catch {
      // What is read on this thread says why it cannot be.
    }
    return "none";
  }

  async function readOn(handle: Deno.FsFile, offset: number, target: Uint8Array): Promise<void> {
    isReading = true;
    try {
      handle.seekSync(offset, Deno.SeekMode.Start);
      for (let done = 0; done < target.length;) {
        done += some(await handle.read(target.subarray(done)), offset + done);
      }
    } finally {
      isReading = false;
    }
  }

  return {
    name: path,
    size,
    file: identity,
    readInto(offset: number, target: Uint8Array): void {
      check(offset, target);
      file.seekSync(offset, Deno.SeekMode.Start);
      for (let done = 0; done < target.length;) {
        done += some(file.readSync(target.subarray(done)), offset + done);
      }
    },
    readBeside(offset, target) {
      check(offset, target);
      const isShared = !(target.buffer instanceof ArrayBuffer);
      if (isReading || isShared || target.length < WORTH_BESIDE) return undefined;
      // A handle of its own, since that of `readInto` may be wanted at any time.
      second ??= again();
      return second === "none" ? undefined : readOn(second, offset, target);
    },
    openSibling: (name: string) => openFile(siblingPath(path, name)),
    close(): void {
      if (open) file.close();
      if (open && second && second !== "none") second.close();
      open = false;
    },
  };
}

function identityOf(path: string, { size, ino, mtime }: Deno.FileInfo): string {
  return JSON.stringify([path, size, ino, mtime?.getTime() ?? null]);
}

/**
 * How worker threads read the files that {@linkcode openFile} opens (wasm/pool.ts says what it must do): a thread
 * opens the file by itself, so that threads need not wait for each other's reads, if it is still the same file, and
 * if that asks nobody for permission.
 */
export const FILE_READER = `() => {
  let known, handle;
  return (file, offset, target) => {
    if (file !== known) {
      handle?.close();
      known = handle = undefined;
      if (file === undefined) return false;
      const [path, size, ino, mtime] = JSON.parse(file);
      if (Deno.permissions.querySync({ name: "read", path }).state !== "granted") return false;
      handle = Deno.openSync(path);
      known = file;
      const info = handle.statSync();
      if (info.size !== size || info.ino !== ino || (info.mtime?.getTime() ?? null) !== mtime) known = "";
    }
    if (known === "") return false;
    handle.seekSync(offset, Deno.SeekMode.Start);
    for (let done = 0; done < target.length;) {
      const count = handle.readSync(target.subarray(done));
      if (!count) return false;
      done += count;
    }
    return true;
  };
}`;

/** A source over bytes in memory; `bytes` may be any view, also one that starts inside its buffer. */
export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  return {
    name,
    size: bytes.length,
    readInto(offset: number, target: Uint8Array): void {
      checkRange(name, { size: bytes.length, offset, length: target.length });
      target.set(bytes.subarray(offset, offset + target.length));
    },
    close(): void {},
  };
}

/**
 * Guards a read.
 *
 * @throws {FormatError} If `[offset, offset + length)` leaves a source of `size` bytes.
 */
export function checkRange(
  name: string,
  { size, offset, length }: {
    readonly size: number;
    readonly offset: number;
    readonly length: number;
  },
): void {
  if (!Number.isSafeInteger(offset) || offset < 0 || length > size - offset) {
    throw new FormatError(`cannot read ${length} bytes: the file has ${size}`, {
      file: name,
      place: `byte ${offset}`,
      remedy: "The file is cut short or its header is wrong: fetch it again",
    });
  }
}

/**
 * Path of `name` in the folder that holds `path`.
 *
 * @throws {FormatError} If `name` is more than a plain file name, so that no file outside is reached.
 */
export function siblingPath(path: string, name: string): string {
  // A few names of our own have a folder in them; `..` is refused in any part.
  for (const part of name.split("/")) checkPlainName(part, path);
  return folderOf(path) + name;
}

/**
 * Opens a file that a model names, which must lie in the model's folder, also when it is a link: its real
 * path is compared with the folder as given and with the folder where the model really lies (a cache of
 * links). A hard link cannot be told from a plain file, and package stores are full of them: it is read.
 *
 * @throws {FormatError} If the name or a link leaves the folder. @throws {SourceError} As `openFile`.
 */
export function openInside(model: string, name: string): ByteSource {
  const path = siblingPath(model, name);
  let real: string;
  try {
    real = Deno.realPathSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      throw new SourceError(`refers to ${JSON.stringify(name)}, which does not exist`, {
        file: model,
        remedy: "Fetch the model with all its files",
        cause: error,
      });
    }
    throw readError(path, error);
  }
  const folders = [
    folderOf(realPathOr(model)),
    realPathOr(folderOf(model)) + (Deno.build.os === "windows" ? "\\" : "/"),
  ];
  if (!folders.some((folder) => real.startsWith(folder))) {
    throw new FormatError(`refers to ${JSON.stringify(name)}, a link out of its folder`, {
      file: model,
      remedy: "Model files may only refer to files in their own folder",
    });
  }
  return openFile(path);
}

function realPathOr(path: string): string {
  try {
    return Deno.realPathSync(path || ".");
  } catch {
    // Not readable itself, as when a permission names single files.
    return path;
  }
}

/** Refuses names with separators, drive letters, `..`, or control characters. */
export function checkPlainName(name: string, file: string): void {
  // deno-lint-ignore no-control-regex -- control characters are what is looked for
  if (name === "" || name === "." || name === ".." || /[/\\:\u0000-\u001f]/.test(name)) {
    throw new FormatError(`refers to ${JSON.stringify(name)}, which is not a plain file name`, {
      file,
      remedy: "Model files may only refer to files in their own folder",
    });
  }
}

/** A file that does not exist yet: it appears under its name only when it is whole; disposed of before, it goes. */
export interface NewFile extends Disposable {
  /** Appends all bytes. */
  write(bytes: Uint8Array): void;
  /** Waits until the disk has it and gives it its name. */
  finish(): void;
}

/**
 * Creates a file beside its final name, which must be free, also when it is finished.
 *
 * @throws {SourceError} If there is something of that name, or the folder may not be written to.
 * @throws {ResourceError} If the disk becomes full.
 */
export function createFile(path: string): NewFile {
  refuseExisting(path);
  const partial = partialName(path);
  const guard = <T>(action: () => T): T => writing(path, action);
  const file = guard(() => Deno.openSync(partial, { write: true, createNew: true }));
  let state: "open" | "closed" | "gone" = "open";
  const close = (): void => {
    if (state === "open") file.close();
    if (state === "open") state = "closed";
  };
  return {
    write(bytes: Uint8Array): void {
      guard(() => {
        for (let done = 0; done < bytes.length;) done += file.writeSync(bytes.subarray(done));
      });
    },
    finish(): void {
      guard(() => file.syncDataSync());
      close();
      refuseExisting(path);
      guard(() => Deno.renameSync(partial, path));
      state = "gone";
    },
    [Symbol.dispose](): void {
      close();
      if (state === "closed") Deno.removeSync(partial);
      state = "gone";
    },
  };
}

/** Writes a whole text as {@linkcode createFile} does. @throws As it. */
export function writeNewText(path: string, text: string): void {
  using file = createFile(path);
  file.write(new TextEncoder().encode(text));
  file.finish();
}

/** A free name beside `path` for what is not whole yet; one that an ended process left is no hindrance. */
export function partialName(path: string): string {
  const base = `${path.replace(/[/\\]+$/, "")}.${Deno.pid}`;
  let name = `${base}.partial`;
  // Containers give every process the same number.
  for (let n = 2; pathKind(name) !== undefined; n++) name = `${base}-${n}.partial`;
  return name;
}

/** What earlier tries to make `path` have left beside it: they were killed, or are still running. */
export function listPartials(path: string): string[] {
  const plain = path.replace(/[/\\]+$/, "");
  const folder = folderOf(plain);
  const name = plain.slice(folder.length);
  const isPartial = (other: string) =>
    other.startsWith(name) && /^\.\d+(-\d+)?\.partial\/?$/.test(other.slice(name.length));
  return listFolder(folder || ".").filter(isPartial).map((other) => folder + other).sort();
}

/**
 * Creates a folder that must not exist.
 *
 * @throws {SourceError} If there is something of that name, or its parent may not be written to.
 */
export function createFolder(path: string): void {
  refuseExisting(path);
  writing(path, () => Deno.mkdirSync(path));
}

/**
 * Creates an empty folder where the system has its temporary files; {@linkcode removeFolder} takes it away.
 *
 * @throws {SourceError} If it may not be written to.
 */
export function createTemporaryFolder(prefix: string): string {
  return writing("the folder for temporary files/", () => Deno.makeTempDirSync({ prefix }));
}

/** Gives a folder of {@linkcode createFolder} its final name, which must be free. */
export function renameFolder(from: string, to: string): void {
  refuseExisting(to);
  writing(to, () => Deno.renameSync(from, to));
}

/** Removes a folder of {@linkcode createFolder} and all that is in it. */
export function removeFolder(path: string): void {
  Deno.removeSync(path, { recursive: true });
}

/**
 * Says that nothing may be at `path`, before any work is done for it.
 *
 * @throws {SourceError} If there is something.
 */
export function refuseExisting(path: string): void {
  if (pathKind(path) === undefined) return;
  throw new SourceError("exists already and is not overwritten", {
    file: path,
    remedy: "Give another name, or delete it first",
  });
}

/** What writes to `path`; if it fails, an error that says what to do. */
function writing<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    // It is written under another name beside it first.
    throw writeError(path, error, { asked: folderOf(path) || "." });
  }
}

/** The same of what reads it. */
function reading<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw readError(path, error);
  }
}

/** Whether a module may be started as a worker without asking; what comes from the network is not known before. */
export function mayReadModule(url: URL): boolean {
  if (url.protocol !== "file:") return true;
  return Deno.permissions.querySync({ name: "read", path: url }).state === "granted";
}

/** True if the error says that a file does not exist, rather than that it cannot be read. */
export function isMissing(error: unknown): boolean {
  return error instanceof SourceError && error.cause instanceof Deno.errors.NotFound;
}

/** `file`, `folder`, or undefined when there is nothing at `path`. */
export function pathKind(path: string): "file" | "folder" | undefined {
  try {
    return Deno.statSync(path).isDirectory ? "folder" : "file";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw readError(path, error);
  }
}

/** Where a file lies, from the root, links followed. */
export function realPath(path: string): string {
  return reading(path, () => Deno.realPathSync(path));
}

/** Text of a small file, at once. @throws {SourceError} If it cannot be read. */
export function readTextNow(path: string): string {
  return reading(path, () => Deno.readTextFileSync(path));
}

/** Names in a folder, sorted; sub-folders end with `/`. */
export function listFolder(path: string): string[] {
  const entries = reading(path, () => [...Deno.readDirSync(path)]);
  return entries.map(({ name, isDirectory }) => isDirectory ? `${name}/` : name).sort();
}

/** The text of a file, or undefined where there is none or it may not be read; never asks. */
export function readIfAllowed(path: string): string | undefined {
  if (Deno.permissions.querySync({ name: "read", path }).state !== "granted") return undefined;
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}

/** Replaces a file as a whole, if that is allowed; never asks, and does without where it fails. */
export function writeIfAllowed(path: string, text: string): void {
  const folder = folderOf(path);
  if (Deno.permissions.querySync({ name: "write", path: folder }).state !== "granted") return;
  try {
    Deno.mkdirSync(folder, { recursive: true });
    const partial = partialName(path);
    Deno.writeTextFileSync(partial, text, { createNew: true });
    Deno.renameSync(partial, path);
  } catch {
    // What is not kept is found out again.
  }
}

/** Name and version of what runs this. */
export function runtimeVersion(): string {
  return navigator.userAgent.replace("/", " ");
}

/** An environment variable, or undefined when it is unset or may not be read; never asks. */
export function readEnv(name: string): string | undefined {
  if (Deno.permissions.querySync({ name: "env", variable: name }).state !== "granted") {
    return undefined;
  }
  return Deno.env.get(name) || undefined;
}

/** Bytes that programs may still take, or undefined where that may not be known; never asks. */
export function freeMemory(): number | undefined {
  const permission = { name: "sys", kind: "systemMemoryInfo" } as const;
  if (Deno.permissions.querySync(permission).state !== "granted") return undefined;
  const { available, swapFree } = Deno.systemMemoryInfo();
  return available + swapFree;
}

// Where Linux shows graphics cards that compute: NVIDIA's, WSL's, AMD's and ARM's own files, and the folder of all drivers'
// render nodes, which the plain screens of servers do not have.
const GPU_FILES = ["/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "/dev/mali0"], DRIVERS = "/dev/dri";

/**
 * Whether it is worth asking for a GPU: false on Linux where nothing is there through which a driver reaches a card. Asking
 * wakes the software renderer there (0.1 s, 60 MB), and libraries that complain on stderr. True wherever this can't be
 * seen, for want of permission as well.
 */
export function mayHaveGpu(): boolean {
  if (Deno.build.os !== "linux") return true;
  return GPU_FILES.some((path) => mayBe(path, () => !!Deno.statSync(path))) ||
    mayBe(DRIVERS, () => [...Deno.readDirSync(DRIVERS)].some(({ name }) => /^renderD/.test(name)));
}

function mayBe(path: string, look: () => boolean): boolean {
  if (Deno.permissions.querySync({ name: "read", path }).state !== "granted") return true;
  try {
    return look();
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

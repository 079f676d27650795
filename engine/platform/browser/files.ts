// Files for the engine in a worker of a browser: bytes in memory and files of the origin's private file system, mounted under
// names that begin with a slash. They are read at once, as on a disk: through a FileSystemSyncAccessHandle, which only
// workers have.

/**
 * What a mounted file is read through.
 * @category Browser
 */
export interface SyncFile {
  /** Its length in bytes. */
  getSize(): number;
  /** Reads from `at` on. @returns How many bytes there were, at most the target's length. */
  read(target: Uint8Array, options: { readonly at: number }): number;
}

/** A file of the origin's private file system as workers open it; Deno's library knows no workers' types. */
export interface SyncHandle extends SyncFile {
  write(bytes: Uint8Array, options: { readonly at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

/** Opens a file for this worker alone. */
export async function openSyncHandle(handle: FileSystemFileHandle): Promise<SyncHandle> {
  return await (handle as unknown as { createSyncAccessHandle(): Promise<SyncHandle> })
    .createSyncAccessHandle();
}

const mounted = new Map<string, SyncFile>();

/**
 * Makes a file known by a name; what had it before is not known any more.
 *
 * @example
 * ```ts ignore
 * import { fileOfBytes, loadGraph, mount } from "troodon/browser";
 *
 * const response = await fetch("model.onnx");
 * mount("/model.onnx", fileOfBytes(new Uint8Array(await response.arrayBuffer())));
 * const graph = await loadGraph("/model.onnx");
 * ```
 * @category Browser
 */
export function mount(path: string, file: SyncFile): void {
  mounted.set(path, file);
}

/**
 * Takes a name back.
 *
 * @example
 * ```ts ignore
 * import { fileOfBytes, mount, unmount } from "troodon/browser";
 *
 * mount("/model.onnx", fileOfBytes(bytes));
 * unmount("/model.onnx"); // the bytes may go
 * ```
 * @category Browser
 */
export function unmount(path: string): void {
  mounted.delete(path);
}

/**
 * Bytes as a file.
 *
 * @example
 * ```ts ignore
 * import { fileOfBytes } from "troodon/browser";
 *
 * console.log(fileOfBytes(Uint8Array.of(1, 2, 3)).getSize()); // 3
 * ```
 * @category Browser
 */
export function fileOfBytes(bytes: Uint8Array): SyncFile {
  return {
    getSize: () => bytes.length,
    read(target, { at }) {
      const part = bytes.subarray(at, at + target.length);
      target.set(part);
      return part.length;
    },
  };
}

function missing(path: string): Error {
  return Object.assign(new Error(`nothing is mounted as ${path}`), { code: "ENOENT" });
}

function find(path: string): SyncFile {
  const file = mounted.get(path);
  if (!file) throw missing(path);
  return file;
}

const below = (path: string): string => path.endsWith("/") ? path : `${path}/`;

function statSync(path: string) {
  const isFolder = !mounted.has(path) &&
    [...mounted.keys()].some((name) => name.startsWith(below(path)));
  const size = isFolder ? 0 : find(path).getSize();
  return { isFile: !isFolder, isDirectory: isFolder, size, ino: null, mtime: null };
}

function openSync(path: string) {
  const file = find(path);
  let at = 0;
  return {
    statSync: () => statSync(path),
    seekSync: (offset: number) => void (at = offset),
    readSync(target: Uint8Array): number | null {
      const count = file.read(target, { at });
      at += count;
      return count || null;
    },
    close: () => {},
  };
}

function readDirSync(path: string) {
  const folder = below(path);
  const names = [...mounted.keys()].filter((name) => name.startsWith(folder))
    .map((name) => name.slice(folder.length).split("/"));
  const isFolder = new Map(names.map(([first, ...rest]) => [first!, rest.length > 0]));
  return [...isFolder].map(([name, isDirectory]) => ({ name, isDirectory, isFile: !isDirectory }));
}

function readTextFileSync(path: string): string {
  const file = find(path), bytes = new Uint8Array(file.getSize());
  file.read(bytes, { at: 0 });
  return new TextDecoder().decode(bytes);
}

/** The functions of `Deno` that read. */
export const FILES = {
  SeekMode: { Start: 0 },
  openSync,
  statSync,
  readDirSync,
  readTextFileSync,
  realPathSync: (path: string) => (statSync(path), path),
} as const;

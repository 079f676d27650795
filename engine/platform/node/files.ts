// The files of Node and Bun under the names that engine/io.ts and engine/formats/hub call: the part of `Deno` that they
// use, on node:fs. Errors keep Node's codes; error_classes.ts tells them apart.

import type fsTypes from "node:fs";
import { nodeModule } from "./node_module.ts";

const fs = nodeModule<typeof import("node:fs")>("node:fs");
const os = nodeModule<typeof import("node:os")>("node:os");
const path = nodeModule<typeof import("node:path")>("node:path");

interface OpenOptions {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly create?: boolean;
  readonly createNew?: boolean;
}

function flagsOf({ read, write, create, createNew }: OpenOptions): number {
  const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL } = fs.constants;
  return (write ? read ? O_RDWR : O_WRONLY : O_RDONLY) |
    (create || createNew ? O_CREAT : 0) | (createNew ? O_EXCL : 0);
}

function facts(stat: fsTypes.Stats) {
  return {
    isFile: stat.isFile(),
    isDirectory: stat.isDirectory(),
    size: stat.size,
    ino: stat.ino,
    mtime: stat.mtime,
  };
}

/** An open file that remembers how far it was read, as Deno.FsFile does. */
class OpenFile {
  readonly #fd: number;
  readonly #path: string;
  #position = 0;
  #lock: string | undefined;

  constructor(path: string, options: OpenOptions = { read: true }) {
    this.#fd = fs.openSync(path, flagsOf(options), 0o666);
    this.#path = path;
  }

  statSync() {
    return facts(fs.fstatSync(this.#fd));
  }

  seekSync(offset: number): void {
    this.#position = offset;
  }

  readSync(target: Uint8Array): number | null {
    const count = fs.readSync(this.#fd, target, 0, target.length, this.#position);
    this.#position += count;
    return count || null;
  }

  read(target: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) =>
      fs.read(this.#fd, target, 0, target.length, this.#position, (error, count) => {
        if (error) return reject(error);
        this.#position += count;
        resolve(count || null);
      })
    );
  }

  writeSync(bytes: Uint8Array): number {
    const count = fs.writeSync(this.#fd, bytes, 0, bytes.length, this.#position);
    this.#position += count;
    return count;
  }

  truncateSync(size: number): void {
    fs.ftruncateSync(this.#fd, size);
  }

  syncDataSync(): void {
    fs.fdatasyncSync(this.#fd);
  }

  syncData(): Promise<void> {
    return Promise.resolve(this.syncDataSync());
  }

  /** Node locks no files: a file beside this one with the number of the process that holds it does instead. */
  tryLock(): Promise<boolean> {
    const name = `${this.#path}.held`;
    for (let tries = 0; tries < 2; tries++) {
      try {
        fs.writeFileSync(name, String(process.pid), { flag: "wx" });
        this.#lock = name;
        return Promise.resolve(true);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        if (isHeld(name)) return Promise.resolve(false);
        fs.rmSync(name, { force: true });
      }
    }
    return Promise.resolve(false);
  }

  close(): void {
    if (this.#lock) fs.rmSync(this.#lock, { force: true });
    fs.closeSync(this.#fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Whether the process that wrote its number still runs. */
function isHeld(name: string): boolean {
  try {
    process.kill(Number(fs.readFileSync(name, "utf8")), 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

const openSync = (path: string, options?: OpenOptions) => new OpenFile(path, options);
const statSync = (path: string) => facts(fs.statSync(path));
const readFileSync = (path: string): Uint8Array => new Uint8Array(fs.readFileSync(path));
const readTextFileSync = (path: string): string => fs.readFileSync(path, "utf8");
const temporary = ({ prefix = "" } = {}) => fs.mkdtempSync(path.join(os.tmpdir(), prefix));

function readDirSync(folder: string) {
  return fs.readdirSync(folder, { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    isDirectory: entry.isDirectory(),
    isFile: entry.isFile(),
  }));
}

function writeTextFileSync(path: string, text: string, { createNew = false } = {}): void {
  fs.writeFileSync(path, text, { flag: createNew ? "wx" : "w" });
}

/** The functions; those that Deno has twice are the same work here, since models are read at once in any case. */
export const FILES = {
  SeekMode: { Start: 0 },
  openSync,
  open: async (path: string, options?: OpenOptions) => await openSync(path, options),
  statSync,
  stat: async (path: string) => await statSync(path),
  readFileSync,
  readFile: async (path: string) => await readFileSync(path),
  readTextFileSync,
  readTextFile: async (path: string) => await readTextFileSync(path),
  writeTextFileSync,
  writeTextFile: async (path: string, text: string) => await writeTextFileSync(path, text),
  readDirSync,
  realPathSync: (path: string) => fs.realpathSync(path),
  renameSync: (from: string, to: string) => fs.renameSync(from, to),
  rename: async (from: string, to: string) => await fs.promises.rename(from, to),
  removeSync: (path: string, { recursive = false } = {}) =>
    recursive ? fs.rmSync(path, { recursive }) : removeOne(path),
  remove: async (path: string, { recursive = false } = {}) =>
    recursive ? await fs.promises.rm(path, { recursive }) : removeOne(path),
  mkdirSync: (path: string, options?: { recursive?: boolean }) => void fs.mkdirSync(path, options),
  mkdir: async (path: string, options?: { recursive?: boolean }) =>
    void await fs.promises.mkdir(path, options),
  makeTempDirSync: temporary,
  makeTempDir: async (options?: { prefix?: string }) => await temporary(options),
} as const;

function removeOne(path: string): void {
  if (fs.lstatSync(path).isDirectory()) fs.rmdirSync(path);
  else fs.unlinkSync(path);
}

// Files of an origin's private file system that misbehave as browsers' do: it is made of memory here.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { FormatError, ResourceError, SourceError } from "../../errors.ts";
import { fetchFile, removeFile } from "./fetch_file.ts";
import { Sha256 } from "./sha256.ts";

const URL_OF_FILE = "https://models.example/model.bin";
const PIECE = 1000;
const BYTES = Uint8Array.from({ length: 4500 }, (_, i) => i * 7 % 251);

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** A folder of an origin, as one visit to it has it: bytes by name, and the most that all may take. */
function folderOf(files: Map<string, Uint8Array<ArrayBuffer>>, quota = Infinity) {
  const open = new Set<string>();
  const handle = (name: string) => ({
    getFile: () => Promise.resolve(new Blob([files.get(name)!])),
    createSyncAccessHandle() {
      if (open.has(name)) {
        return Promise.reject(new DOMException("", "NoModificationAllowedError"));
      }
      open.add(name);
      return Promise.resolve({
        getSize: () => files.get(name)!.length,
        read(target: Uint8Array, { at }: { at: number }) {
          const part = files.get(name)!.subarray(at, at + target.length);
          target.set(part);
          return part.length;
        },
        write(bytes: Uint8Array, { at }: { at: number }) {
          this.truncate(Math.max(this.getSize(), at + bytes.length));
          const room = Math.max(0, this.getSize() - at);
          files.get(name)!.set(bytes.subarray(0, room), at);
          return Math.min(room, bytes.length);
        },
        truncate(size: number) {
          const grown = new Uint8Array(Math.min(size, quota));
          grown.set(files.get(name)!.subarray(0, grown.length));
          files.set(name, grown);
        },
        flush() {},
        close: () => void open.delete(name),
      });
    },
  });
  return {
    getFileHandle(name: string, { create = false } = {}) {
      if (!files.has(name) && !create) return Promise.reject(new DOMException("", "NotFoundError"));
      if (!files.has(name)) files.set(name, new Uint8Array());
      return Promise.resolve(handle(name));
    },
    removeEntry: (name: string) =>
      open.has(name)
        ? Promise.reject(new DOMException("", "NoModificationAllowedError"))
        : Promise.resolve(void files.delete(name)),
  } as unknown as FileSystemDirectoryHandle;
}

/** A server: what is asked for, and what goes wrong. */
function serverOf({ bytes = BYTES, ranges = true, etag = "a" } = {}) {
  const state = { bytes, ranges, etag, failures: 0, asked: [] as number[] };
  const fetch = (_url: unknown, init?: RequestInit): Promise<Response> => {
    const range = new Headers(init?.headers).get("range")!;
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range)!.map(Number) as [number, number, number];
    if (to > 0) state.asked.push(from / PIECE);
    if (to > 0 && state.failures-- > 0) return Promise.reject(new TypeError("cut off"));
    const headers = { etag: state.etag };
    if (!state.ranges) {
      const length = { "content-length": String(state.bytes.length) };
      return Promise.resolve(new Response(state.bytes, { headers: { ...headers, ...length } }));
    }
    const part = state.bytes.slice(from, to + 1);
    const said = { "content-range": `bytes ${from}-${to}/${state.bytes.length}` };
    return Promise.resolve(new Response(part, { status: 206, headers: { ...headers, ...said } }));
  };
  return { state, fetch: fetch as typeof globalThis.fetch };
}

const stored = (files: ReadonlyMap<string, Uint8Array>) => [...files.get("model.bin")!];

Deno.test("SHA-256 is node:crypto's, however the bytes are cut", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000, 4500]) {
    const bytes = BYTES.subarray(0, length);
    const sum = new Sha256();
    for (let at = 0; at < length; at += 37) sum.update(bytes.subarray(at, at + 37));
    assertEquals(sum.digest(), sha256(bytes), `${length} bytes`);
  }
});

Deno.test("a file is fetched by pieces, once, and what was cut off goes on", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const options = { directory: folderOf(files), pieceBytes: PIECE };
  const { fetch, state } = serverOf();
  const abort = new AbortController();
  const onProgress = ({ received }: { received: number }) => {
    if (received === 2 * PIECE) abort.abort(new Error("enough"));
  };
  const cut = { ...options, fetch, signal: abort.signal, onProgress };
  await assertRejects(() => fetchFile(URL_OF_FILE, cut), Error, "enough");
  assertEquals(state.asked, [0, 1]);
  const path = await fetchFile(URL_OF_FILE, { ...options, fetch, sha256: sha256(BYTES) });
  assertEquals([path, state.asked], ["/troodon/model.bin", [0, 1, 2, 3, 4]]);
  assertEquals(stored(files), [...BYTES]);
  await fetchFile(URL_OF_FILE, { ...options, fetch });
  assertEquals(state.asked.length, 5, "nothing is asked for again");
});

Deno.test("a piece that was changed, and no other, is fetched again; a file that is gone as a whole", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const { fetch, state } = serverOf();
  const visit = () => ({ directory: folderOf(files), pieceBytes: PIECE, fetch });
  await fetchFile(URL_OF_FILE, visit());
  files.get("model.bin")![3100]! ^= 1;
  state.asked = [];
  await fetchFile(URL_OF_FILE, visit());
  assertEquals([state.asked, stored(files)], [[3], [...BYTES]]);
  for (const gone of ["model.bin", "model.bin.note"]) {
    files.delete(gone);
    state.asked = [];
    await fetchFile(URL_OF_FILE, visit());
    assertEquals([state.asked, stored(files)], [[0, 1, 2, 3, 4], [...BYTES]], gone);
  }
});

Deno.test("a server that knows no ranges is read from the start, one that fails is asked again", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const plain = serverOf({ ranges: false });
  const visit = () => ({ directory: folderOf(files), pieceBytes: PIECE });
  await fetchFile(URL_OF_FILE, { ...visit(), fetch: plain.fetch });
  assertEquals([plain.state.asked, stored(files)], [[0], [...BYTES]]);
  files.clear();
  const failing = serverOf();
  failing.state.failures = 1;
  await fetchFile(URL_OF_FILE, { ...visit(), fetch: failing.fetch });
  assertEquals(stored(files), [...BYTES]);
  files.clear();
  failing.state.failures = 9;
  const given = { ...visit(), fetch: failing.fetch, attempts: 1 };
  await assertRejects(() => fetchFile(URL_OF_FILE, given), SourceError, "the connection failed");
});

Deno.test("another version on the server is fetched anew, wrong bytes are not kept", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const visit = () => ({ directory: folderOf(files), pieceBytes: PIECE });
  const { fetch, state } = serverOf();
  await fetchFile(URL_OF_FILE, { ...visit(), fetch });
  files.get("model.bin")![0]! ^= 1;
  [state.bytes, state.etag] = [BYTES.toReversed(), "b"];
  await fetchFile(URL_OF_FILE, { ...visit(), fetch });
  assertEquals(stored(files), [...BYTES.toReversed()]);
  files.clear();
  const wrong = { ...visit(), fetch, sha256: sha256(BYTES) };
  await assertRejects(() => fetchFile(URL_OF_FILE, wrong), FormatError, "has the sha256");
  assertEquals(files.get("model.bin")!.length, 0);
});

Deno.test("a full quota is named with numbers", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const directory = folderOf(files, 2500);
  const { fetch } = serverOf();
  const error = await assertRejects(
    () => fetchFile(URL_OF_FILE, { directory, pieceBytes: PIECE, fetch }),
    ResourceError,
  );
  assert(error.message.includes("no room for the 4500 bytes"), error.message);
});

Deno.test("a worker fetches again what it has open, and lets go what it removes", async () => {
  const files = new Map<string, Uint8Array<ArrayBuffer>>(), directory = folderOf(files);
  const { fetch } = serverOf();
  const options = { directory, fetch, pieceBytes: PIECE };
  const path = await fetchFile(URL_OF_FILE, options);
  assertEquals(await fetchFile(URL_OF_FILE, options), path);
  await removeFile("model.bin", directory);
  assertEquals([...files.keys()], []);
});

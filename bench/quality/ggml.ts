// llama.cpp's own quantisers: `ggml_quantize_chunk` of the libggml-base that node-llama-cpp's package of
// binaries carries, called through Deno's FFI. The package lies in a folder outside the repository, pinned;
// nobody but this bench fetches it.

import { formatBytes, type NumberFormat } from "../../quant/mod.ts";

const VERSION = "3.21.1";

// Builds for the CPU, and what a shared library is called there.
const BUILDS: Readonly<Record<string, readonly [build: string, ending: string]>> = {
  "linux x86_64": ["linux-x64", "so"],
  "linux aarch64": ["linux-arm64", "so"],
  "darwin aarch64": ["mac-arm64-metal", "dylib"],
  "darwin x86_64": ["mac-x64", "dylib"],
};

const SYMBOLS = {
  // type, values, blocks, first value, rows, values a row, importance of columns
  ggml_quantize_chunk: {
    parameters: ["i32", "buffer", "buffer", "i64", "i64", "i64", "buffer"],
    result: "usize",
  },
} as const;

/** ggml as a quantiser. */
export interface Ggml {
  readonly name: string;
  /**
   * Encodes whole rows.
   *
   * @param columns Values a row.
   * @param importance How much each column counts.
   * @throws {Error} If ggml writes another number of bytes than the format takes.
   */
  encode(
    format: NumberFormat,
    values: Float32Array<ArrayBuffer>,
    columns: number,
    importance?: Float32Array<ArrayBuffer>,
  ): Uint8Array<ArrayBuffer>;
  close(): void;
}

/**
 * Installs and opens the library.
 *
 * @throws {Error} If there is no build for this machine, or the package cannot be installed.
 */
export async function openGgml(): Promise<Ggml> {
  const machine = `${Deno.build.os} ${Deno.build.arch}`;
  const [build, ending] = BUILDS[machine] ?? [];
  if (!build) throw new Error(`node-llama-cpp has no build of ggml for ${machine}`);
  const folder = await installBuild(build);
  const path =
    `${folder}/node_modules/@node-llama-cpp/${build}/bins/${build}/libggml-base.${ending}`;
  const library = Deno.dlopen(path, SYMBOLS);
  return {
    name: `ggml (node-llama-cpp ${VERSION})`,
    encode(format, values, columns, importance) {
      const out = new Uint8Array(formatBytes(format, values.length));
      const rows = values.length / columns;
      const [size, width] = [BigInt(rows), BigInt(columns)];
      const written = library.symbols.ggml_quantize_chunk(
        ...[format.ggmlType!, values, out, 0n, size, width, importance ?? null] as const,
      );
      if (Number(written) === out.length) return out;
      throw new Error(`ggml wrote ${written} bytes of ${format.name}, not ${out.length}`);
    },
    close: () => library.close(),
  };
}

async function installBuild(build: string): Promise<string> {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${home}/troodon-bench/quality`;
  await Deno.mkdir(folder, { recursive: true });
  const manifest = JSON.stringify({ dependencies: { [`@node-llama-cpp/${build}`]: VERSION } });
  const marker = `${folder}/installed.json`;
  if (await Deno.readTextFile(marker).catch(() => "") === manifest) return folder;
  await Deno.writeTextFile(`${folder}/package.json`, manifest);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["install", "--node-modules-dir=manual"],
    cwd: folder,
  }).output();
  if (!success) {
    throw new Error(`Cannot install @node-llama-cpp/${build}: ${new TextDecoder().decode(stderr)}`);
  }
  await Deno.writeTextFile(marker, manifest);
  return folder;
}

// What the peers of the onnx bench need, in a folder outside the repository, pinned: onnxruntime-web and
// playwright-core from npm, onnxruntime for Python in an environment of its own, and the system's Chromium
// where there is one; on request a copy of native onnxruntime that takes the processor for one with AVX2 and nothing
// wider. Nobody but this bench ever fetches them.

import { succeeds } from "../../tools/support/children.ts";

const PACKAGES: Readonly<Record<string, string>> = {
  "onnxruntime-web": "1.30.0",
  "playwright-core": "1.65.0",
};
const PYTHON_PACKAGES = ["onnxruntime==1.32.0", "numpy"];
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];

/** Where the peers are; absent: not on this machine. */
export interface Peers {
  /** Has `node_modules`. */
  readonly packages: string;
  readonly python: string | undefined;
  /** Environment in which `python` finds onnxruntime held to AVX2. */
  readonly avx2: Readonly<Record<string, string>> | undefined;
  readonly chromium: string | undefined;
}

/** Versions, for the name of a peer. */
export const VERSIONS = { web: PACKAGES["onnxruntime-web"]!, native: "1.32.0" } as const;

/** Folder for models that the bench makes. */
export function benchFolder(): string {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${home}/troodon-bench/onnx`;
  Deno.mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Installs the peers, once. What cannot be installed is left out with a line on standard error.
 *
 * @param options.isAvx2Wanted Whether native onnxruntime is wanted held to AVX2, too.
 * @throws {Error} If even onnxruntime-web is not to be had, or what `isAvx2Wanted` asks for.
 */
export async function preparePeers(
  { isAvx2Wanted = false }: { readonly isAvx2Wanted?: boolean } = {},
): Promise<Peers> {
  const folder = benchFolder();
  const manifest = JSON.stringify({ dependencies: PACKAGES });
  const marker = `${folder}/installed.json`;
  const installed = await Deno.readTextFile(marker).catch(() => "");
  if (installed !== manifest) {
    await Deno.writeTextFile(`${folder}/package.json`, manifest);
    if (!await succeeds(Deno.execPath(), ["install", "--node-modules-dir=manual"], folder)) {
      throw new Error(`Cannot install ${Object.keys(PACKAGES).join(" and ")}; use --no-peer`);
    }
    await Deno.writeTextFile(marker, manifest);
  }
  const python = await preparePython(folder);
  if (!python) console.error("no native onnxruntime: it wants python3 with venv and pip");
  let chromium: string | undefined;
  for (const name of BROWSERS) {
    if (!chromium && await succeeds(name, ["--version"])) chromium = await whereIs(name);
  }
  if (!chromium) console.error("no Chromium: onnxruntime-web is measured in Deno only");
  const avx2 = isAvx2Wanted ? await prepareAvx2(folder, python) : undefined;
  return { packages: folder, python, avx2, chromium };
}

async function preparePython(folder: string): Promise<string | undefined> {
  const python = `${folder}/python/bin/python`;
  if (await succeeds(python, ["-c", "import onnxruntime"])) return python;
  const made = await succeeds("python3", ["-m", "venv", `${folder}/python`]) &&
    await succeeds(python, ["-m", "pip", "install", "-q", ...PYTHON_PACKAGES]);
  return made ? python : undefined;
}

async function prepareAvx2(
  folder: string,
  python: string | undefined,
): Promise<Readonly<Record<string, string>>> {
  const held = `${folder}/avx2-${VERSIONS.native}`;
  const env = {
    PYTHONPATH: held,
    LD_PRELOAD: `${held}/avx2_only.so`,
    // What the C library copies with.
    GLIBC_TUNABLES: "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
  };
  if (await Deno.stat(held).catch(() => undefined)) return env;
  const made = await Deno.makeTempDir({ dir: folder });
  if (!python || !await succeeds(python, ["bench/onnx/avx2_only.py", made])) {
    await Deno.remove(made, { recursive: true });
    throw new Error("Cannot hold onnxruntime to AVX2: that wants Linux, x86-64, cc and objdump");
  }
  await Deno.rename(made, held);
  return env;
}

async function whereIs(name: string): Promise<string> {
  const { stdout } = await new Deno.Command("which", { args: [name] }).output();
  return new TextDecoder().decode(stdout).trim();
}

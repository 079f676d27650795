// The npm package: bundled code for Node, Bun and Deno, one bundle for browsers, and declarations, in a folder that
// `npm pack` and `npm publish` take as it is. What JSR gets are the sources themselves (`deno publish`, deno.json).

import type { Metafile } from "esbuild";
import DENO_JSON from "../../deno.json" with { type: "json" };
import { npmPackages } from "../../engine/npm_packages.ts";
import { LEAST_NODE } from "../../engine/platform/node/node_module.ts";
import { ROOT } from "../support/task.ts";
import { bundle, WORKERS } from "./bundle.ts";
import { declarationPath, declarations } from "./declarations.ts";
import { calledIn, inBrackets } from "./early.ts";

/** Where the package is made. */
export const PACKAGE_FOLDER: string = `${ROOT}/dist/npm`;

/** Entries by the names of deno.json: `./graph` is dist/graph.js. */
const NODE_ENTRIES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(DENO_JSON.exports).map(([name, path]) => [
    name === "." ? "mod" : name.slice(2),
    path.slice(2),
  ]),
);

/** Generated tables, once for both bundles. */
const TABLES = "../tables";

const BROWSER_ENTRY = "engine/platform/browser/mod.ts";

/** Of serving, what comes with the package; other packages are for whoever wants what they do. */
const INCLUDED = ["hono", "prom-client"];

/** The command: under an older Node it says so without a stack. */
const BIN = `#!/usr/bin/env node
if (parseInt(process.versions.node) < ${LEAST_NODE}) {
  console.error(\`error: troodon needs Node ${LEAST_NODE} or later, and this is \${process.versions.node}\`);
  process.exit(1);
}
await import("../dist/node/cli.js");
`;

function packageJson() {
  const versions = npmPackages().map((specifier) => {
    const [, name, version] = /^npm:(.+)@([\d.]+)$/.exec(specifier)!;
    return [name!, version!] as const;
  });
  const wanted = (isIncluded: boolean) =>
    versions.filter(([name]) => INCLUDED.includes(name) === isIncluded);
  const entry = (name: string, source: string) => ({
    types: `./types/${declarationPath(source)}`,
    default: `./dist/${name}.js`,
  });
  return {
    name: "troodon",
    version: DENO_JSON.version,
    description: "Local models in TypeScript: WebAssembly SIMD and WebGPU, no native add-ons",
    license: DENO_JSON.license,
    keywords: ["llm", "inference", "gguf", "onnx", "webgpu", "wasm", "embeddings"],
    type: "module",
    sideEffects: false,
    engines: { node: `>=${LEAST_NODE}` },
    bin: { troodon: "./bin/troodon.js" },
    exports: {
      ...Object.fromEntries(
        Object.entries(NODE_ENTRIES).map(([name, path]) => [
          name === "mod" ? "." : `./${name}`,
          entry(`node/${name}`, path),
        ]),
      ),
      "./browser": entry("browser/browser", BROWSER_ENTRY),
    },
    optionalDependencies: Object.fromEntries(wanted(true)),
    peerDependencies: Object.fromEntries(wanted(false)),
    peerDependenciesMeta: Object.fromEntries(
      wanted(false).map(([name]) => [name, { optional: true }]),
    ),
  };
}

async function write(path: string, text: string): Promise<void> {
  const target = `${PACKAGE_FOLDER}/${path}`;
  await Deno.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true });
  await Deno.writeTextFile(target, text);
}

/**
 * Numbers shared parts by what they are made of, in the place of hashes: those are nothing that compresses, in every file that
 * imports them, and put parts into an order that is another one at every change.
 */
async function numberParts(folder: string, outputs: Metafile["outputs"]): Promise<void> {
  const parts = Object.entries(outputs).flatMap(([path, { inputs }]) => {
    const [, hash] = /\/chunk-([A-Z0-9]{8})\.js$/.exec(path) ?? [];
    return hash ? [{ hash, source: Object.keys(inputs).join() }] : [];
  }).sort((a, b) => a.source < b.source ? -1 : 1);
  const numbers = new Map(parts.map(({ hash }, i) => [hash, `c${i}`]));
  for (const { name } of [...Deno.readDirSync(folder)]) {
    const renamed = (text: string) =>
      text.replaceAll(/\bchunk-([A-Z0-9]{8})\.js/g, (all, hash) => {
        const number = numbers.get(hash);
        return number ? `${number}.js` : all;
      });
    const text = await Deno.readTextFile(`${folder}/${name}`);
    await Deno.remove(`${folder}/${name}`);
    await Deno.writeTextFile(`${folder}/${renamed(name)}`, renamed(text));
  }
}

/**
 * Deno reads and analyses every file that an `import()` names before the first line runs: 270 files for the 108 that an
 * `import` of the engine needs. A choice of two names it leaves alone, and bundlers see through it.
 */
async function hideParts(folder: string): Promise<void> {
  for await (const { name } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`, text = await Deno.readTextFile(path);
    await Deno.writeTextFile(
      path,
      text.replaceAll(/import\(("\.\.?\/[^"]+")\)/g, "import(1?$1:$1)"),
    );
  }
}

/** A small model, for what a first token calls. */
const SMALL_MODEL = `${ROOT}/tests/fixtures/models/llama_formats/llama.Q8_0.gguf`;

/** Kernels are tried once on a machine, and not by every process. */
const GPU_TOKEN = `
import { generate, load } from "${PACKAGE_FOLDER}/dist/node/mod.js";
const model = await load("${SMALL_MODEL}", { device: "gpu", selfTest: false, stepsAhead: 8 });
await generate(model, "a", { maxTokens: 1 }).result;
`;

/**
 * Has what is called until a first token compiled with its file: that of the command on the CPU, and, where there is any
 * adapter, what a GPU takes besides.
 */
async function compileEarly(folder: string): Promise<void> {
  const temporary = await Deno.makeTempDir(), coverage = `${temporary}/coverage`;
  const script = `${temporary}/gpu_token.js`;
  await Deno.writeTextFile(script, GPU_TOKEN);
  const run = async (args: readonly string[]) => {
    const how = ["--allow-all", "--unstable-lazy-dynamic-imports", `--coverage=${coverage}`];
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", `--config=${ROOT}/deno.json`, ...how, ...args],
      // What earlier processes have found out must make no difference.
      env: { TROODON_CACHE: `${temporary}/cache` },
    }).output();
    return success ? undefined : new TextDecoder().decode(stderr);
  };
  const generate = ["generate", SMALL_MODEL, "--raw", "-p", "a", "--max-tokens", "1"];
  const error = await run([`${PACKAGE_FOLDER}/bin/troodon.js`, ...generate, "--device", "wasm"]);
  if (error !== undefined) throw new Error(error);
  await run([script]);
  for (const [url, called] of calledIn(coverage)) {
    const path = decodeURIComponent(new URL(url).pathname);
    if (!path.startsWith(folder)) continue;
    await Deno.writeTextFile(path, inBrackets(await Deno.readTextFile(path), called));
  }
  await Deno.remove(temporary, { recursive: true });
}

/** Makes the package anew. @returns Bytes of its files. */
export async function writePackage(): Promise<number> {
  await Deno.remove(PACKAGE_FOLDER, { recursive: true }).catch(() => {});
  const workers = Object.entries(WORKERS).map(([source, name]) => [name, source]);
  const outputs = await bundle({
    platform: "node",
    entries: { ...NODE_ENTRIES, ...Object.fromEntries(workers) },
    outdir: `${PACKAGE_FOLDER}/dist/node`,
    tables: TABLES,
  });
  await numberParts(`${PACKAGE_FOLDER}/dist/node`, outputs);
  await hideParts(`${PACKAGE_FOLDER}/dist/node`);
  await bundle({
    platform: "browser",
    entries: { browser: BROWSER_ENTRY },
    outdir: `${PACKAGE_FOLDER}/dist/browser`,
    tables: TABLES,
  });
  const entries = [...Object.values(NODE_ENTRIES), BROWSER_ENTRY];
  for (const [path, text] of declarations(entries)) await write(`types/${path}`, text);
  await write("package.json", JSON.stringify(packageJson(), undefined, 2) + "\n");
  await write("bin/troodon.js", BIN);
  await compileEarly(`${PACKAGE_FOLDER}/dist/node/`);
  for (const name of ["README.md", "CHANGELOG.md", "LICENSE"]) {
    await Deno.copyFile(`${ROOT}/${name}`, `${PACKAGE_FOLDER}/${name}`);
  }
  return bytesBelow(PACKAGE_FOLDER);
}

/** Bytes of all files below a folder. */
export function bytesBelow(folder: string): number {
  return [...Deno.readDirSync(folder)].reduce((sum, { name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return sum + (isDirectory ? bytesBelow(path) : Deno.statSync(path).size);
  }, 0);
}

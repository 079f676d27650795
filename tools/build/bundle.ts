// Bundles of the engine for places without Deno, by esbuild: the sources stay as they are, and the names of the platform
// that they use (`Deno`, `Worker`, …) come from a file of engine/platform.
//
// esbuild puts modules into one part that the same entries and the same `import()`s reach. A module that one more `import()`
// comes to use is therefore a part of its own, or takes others with it, and each part that imports it has its name, whose
// letters no archive shortens: some ten bytes an import packed, of which there are 8,000.

import type { BuildOptions, Metafile, Plugin } from "esbuild";
import { ROOT } from "../support/task.ts";

/** Where a bundle runs. */
export type Platform = "node" | "browser";

/** A platform's own files in place of those that only Deno can run. */
function replacements(platform: Platform): Plugin {
  return {
    name: "platform",
    setup(build) {
      const own = `${ROOT}/engine/platform/${platform}`;
      build.onResolve(
        { filter: /\/npm_packages\.ts$/ },
        ({ kind }) => kind === "entry-point" ? undefined : { path: `${own}/npm_packages.ts` },
      );
      if (platform !== "browser") return;
      // Nothing that runs there calls them.
      build.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "absent" }));
      build.onLoad(
        { filter: /.*/, namespace: "absent" },
        () => ({ contents: "module.exports = {}" }),
      );
    },
  };
}

/** Modules that run in workers: where their address stands, and what they are called in a bundle. */
export const WORKERS = {
  "engine/serve/host/worker.ts": "serve_worker",
  "engine/cli/doctor/kernel_process.ts": "kernel_process",
  "engine/quantize/encode_worker.ts": "encode_worker",
} as const;

/** Addresses of workers' modules, which lie beside a bundle under other names. */
const workerAddresses: Plugin = {
  name: "workers",
  setup(build) {
    build.onLoad({ filter: /[\\/]engine[\\/].*\.ts$/ }, async ({ path }) => {
      const text = await Deno.readTextFile(path);
      if (!text.includes("import.meta.url")) return undefined;
      const contents = Object.entries(WORKERS).reduce((rest, [source, name]) => {
        const file = source.split("/").at(-1);
        return rest.replaceAll(`new URL("./${file}"`, `new URL("./${name}.js"`);
      }, text);
      return { contents, loader: "ts" };
    });
  },
};

/**
 * Generated tables (kernels, specs) as modules of their own, once for all platforms: they are two fifths of a bundle and
 * know no platform, while code imports the names of its own.
 */
function tablesIn(folder: string): Plugin {
  return {
    name: "tables",
    setup(build) {
      build.onResolve({ filter: /\.gen\.json$/ }, async ({ path, resolveDir }) => {
        const target = `${folder}/${path.split("/").at(-1)!.replace(".gen.json", ".js")}`;
        const table = JSON.parse(await Deno.readTextFile(`${resolveDir}/${path}`));
        const file = `${build.initialOptions.outdir}/${target}`;
        await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
        await Deno.writeTextFile(file, `export default ${JSON.stringify(table)};\n`);
        return { path: target, external: true };
      });
    },
  };
}

/** How a bundle is made. */
export interface BundleOptions {
  readonly platform: Platform;
  /** Name of the result (without `.js`) to path of the source, from the root. */
  readonly entries: Readonly<Record<string, string>>;
  readonly outdir: string;
  /** Folder, from `outdir`, of the generated tables; default: they are in the bundle. */
  readonly tables?: string;
  /** False: one file an entry, without parts that are loaded when they are needed. */
  readonly splitting?: boolean;
  /** Bare names that stay imports; default: none. */
  readonly external?: readonly string[];
  /** Expressions in the place of names. */
  readonly define?: Readonly<Record<string, string>>;
}

/**
 * Writes a bundle.
 *
 * @returns What is in it, by file.
 */
export async function bundle(
  { platform, entries, outdir, tables, splitting = true, external = [], define = {} }:
    BundleOptions,
): Promise<Metafile["outputs"]> {
  const esbuild = await import("esbuild");
  const options: BuildOptions = {
    absWorkingDir: ROOT,
    entryPoints: Object.entries(entries).map(([out, path]) => ({ in: `${ROOT}/${path}`, out })),
    outdir,
    bundle: true,
    splitting,
    minify: true,
    // Users read names in stack traces, and errors are told by theirs.
    keepNames: false,
    format: "esm",
    platform: "neutral",
    target: platform === "node" ? ["node22"] : ["chrome125", "safari18.4", "firefox138"],
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    external: [...platform === "node" ? ["node:*"] : [], ...external],
    define: { "import.meta.main": "true", ...define },
    inject: [`engine/platform/${platform}/missing.ts`, `engine/platform/${platform}/globals.ts`]
      .map((path) => `${ROOT}/${path}`),
    // Tables are modules of JavaScript there: Node 22 warns of JSON.
    supported: { "import-attributes": false },
    plugins: [
      replacements(platform),
      workerAddresses,
      ...tables === undefined ? [] : [tablesIn(tables)],
    ],
    logLevel: "error",
  };
  try {
    const { metafile } = await esbuild.build(options);
    return metafile!.outputs;
  } finally {
    await esbuild.stop();
  }
}

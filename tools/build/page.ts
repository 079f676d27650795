// Bundles engine/serve/page/client with esbuild and writes engine/serve/page/page.gen.json: one document with script
// and style inside, and the policy that allows these two by their hashes and nothing else. The result is committed, so
// that nobody needs esbuild to serve it; whether it is up to date is told by the hash of everything that goes in.

import DENO_JSON from "../../deno.json" with { type: "json" };
import { ROOT } from "../support/task.ts";

const FOLDER = `${ROOT}/engine/serve/page`;
const TARGET = "engine/serve/page/page.gen.json";
/** What the bundle is made of, beside the files of the folder. */
const PACKAGES = ["esbuild", "highlight.js", "marked"] as const;

const NOTICE =
  "<!-- Troodon (Apache-2.0) with marked (MIT, Christopher Jeffrey and MarkedJS) and " +
  "highlight.js (BSD-3-Clause, Ivan Sagalaev and contributors) -->";

/** Files that the page is made of, by name; tests are not among them. */
async function sources(): Promise<ReadonlyMap<string, string>> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(`${FOLDER}/client`)) {
    if (!name.endsWith("_test.ts")) names.push(name);
  }
  const read = (name: string) => Deno.readTextFile(`${FOLDER}/client/${name}`);
  return new Map(
    await Promise.all(names.sort().map(async (name) => [name, await read(name)] as const)),
  );
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** SHA-256 over sources, versions and the way of bundling, in hexadecimal. */
async function sourceHash(): Promise<string> {
  const versions = PACKAGES.map((name) => DENO_JSON.imports[name]);
  const recipe = await Deno.readTextFile(new URL(import.meta.url));
  return (await digest(JSON.stringify([versions, recipe, ...await sources()]))).toHex();
}

/** One file and what it imports, as one text. */
async function bundle(name: string): Promise<string> {
  const esbuild = await import("esbuild");
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: [`${FOLDER}/client/${name}`],
      bundle: true,
      minify: true,
      write: false,
      format: "iife",
      target: "es2023",
      charset: "utf8",
      legalComments: "none",
      plugins: [{
        name: "packages",
        // The import map of deno.json says which version a bare name is.
        setup: ({ onResolve }) =>
          onResolve({ filter: /^[a-z]/ }, ({ path, kind }) =>
            kind === "entry-point" ? undefined : {
              path: new URL(import.meta.resolve(path)).pathname,
              sideEffects: false,
            }),
      }],
    });
    return outputFiles[0]!.text.trim();
  } finally {
    await esbuild.stop();
  }
}

/** Makes the page. */
export async function writePage(): Promise<void> {
  // Parts of texts and patterns, where the escape says the same; as they stand they would end the element.
  const script = (await bundle("main.ts")).replace(/<(?=!--|\/?script)/gi, "\\x3c");
  const style = await bundle("style.css");
  const hash = async (text: string) => `'sha256-${(await digest(text)).toBase64()}'`;
  const markup = (await sources()).get("index.html")!.replace(/\n\s*/g, "\n");
  const html = markup
    .replace("<html", () => `${NOTICE}\n<html`)
    .replace("</head>", () => `<style>${style}</style>\n</head>`)
    .replace("</body>", () => `<script>${script}</script>\n</body>`);
  const policy = [
    "default-src 'none'",
    `script-src ${await hash(script)}`,
    `style-src ${await hash(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const etag = `"${(await digest(html)).toHex().slice(0, 32)}"`;
  const content = { sourceHash: await sourceHash(), etag, policy, html };
  await Deno.writeTextFile(`${ROOT}/${TARGET}`, JSON.stringify(content, undefined, 1) + "\n");
  console.log(`page: ${new TextEncoder().encode(html).length} bytes`);
}

/** The page's file, where it is older than its sources. */
export async function stalePage(): Promise<string[]> {
  const current = await Deno.readTextFile(`${ROOT}/${TARGET}`).catch(() => "");
  return current.includes(`"${await sourceHash()}"`) ? [] : [TARGET];
}

/**
 * Models in a page: chat, search by meaning, what is in a picture, what is said, and a check of the visitor's GPU. Makes the
 * bundle with esbuild and serves it with the headers that threads need. The last two models are folders of checkpoints.
 *
 * ```sh
 * deno run -A examples/browser/serve.ts chat.gguf embed.gguf vit-base whisper-tiny
 * ```
 */

import { bundle } from "../../tools/build/bundle.ts";
import { documentOf, PAGES } from "./page.ts";

/** With these two a page may share memory among threads. */
const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};

const TYPES: Readonly<Record<string, string>> = { js: "text/javascript", html: "text/html" };

/** Makes the bundles of all pages. */
export async function buildPages(outdir: string): Promise<void> {
  const names = ["engine", ...PAGES];
  await bundle({
    platform: "browser",
    entries: Object.fromEntries(names.map((name) => [name, `examples/browser/${name}.ts`])),
    outdir,
  });
}

/** A part of a file, or all of it, as the request says. */
async function fileResponse(request: Request, path: string): Promise<Response> {
  using file = await Deno.open(path);
  const { size, mtime } = await file.stat();
  const [, from, to] = /^bytes=(\d+)-(\d+)?$/.exec(request.headers.get("range") ?? "") ?? [];
  const start = Number(from ?? 0), end = Math.min(size, Number(to ?? size - 1) + 1);
  const bytes = new Uint8Array(Math.max(0, end - start));
  await file.seek(start, Deno.SeekMode.Start);
  for (let at = 0; at < bytes.length;) at += await file.read(bytes.subarray(at)) ?? bytes.length;
  const headers = {
    "content-type": TYPES[path.split(".").at(-1)!] ?? "application/octet-stream",
    "etag": `"${size}-${mtime?.getTime()}"`,
    ...from !== undefined && { "content-range": `bytes ${start}-${end - 1}/${size}` },
  };
  return new Response(bytes, { status: from === undefined ? 200 : 206, headers });
}

/** Answers for the pages, their code below `/app/`, and models by name below `/models/`: files, or folders of files. */
export function pageHandler(
  { app, models, isolated = true }: {
    readonly app: string;
    readonly models: Readonly<Record<string, string>>;
    readonly isolated?: boolean;
  },
): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname } = new URL(request.url);
    const [, folder, ...rest] = pathname.split("/");
    const name = rest.join("/");
    const page = folder === "" ? "chat" : folder!;
    const response = PAGES.includes(page)
      ? new Response(documentOf(page), { headers: { "content-type": "text/html" } })
      : folder === "app" && /^[\w.-]+\.js$/.test(name)
      ? await fileResponse(request, `${app}/${name}`).catch(() => new Response("", { status: 404 }))
      : folder === "models" && models[rest[0]!] && /^[\w./-]+$/.test(name) && !name.includes("..")
      ? await fileResponse(request, [models[rest[0]!], ...rest.slice(1)].join("/"))
        .catch(() => new Response("", { status: 404 }))
      : new Response("", { status: 404 });
    if (isolated) {
      for (const [key, value] of Object.entries(ISOLATED)) response.headers.set(key, value);
    }
    return response;
  };
}

if (import.meta.main) {
  const names = ["chat.gguf", "embed.gguf", "picture", "speech"];
  const models = Object.fromEntries(Deno.args.map((path, i) => [names[i], path]));
  const app = await Deno.makeTempDir();
  await buildPages(app);
  Deno.serve({ hostname: "127.0.0.1", port: 8000 }, pageHandler({ app, models }));
}

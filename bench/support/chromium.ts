// A page in the system's Chromium, for peers that were made for browsers: isolated, so that it may use threads,
// served from this process and driven through playwright-core. What the page loads is said by whoever opens it.

import { createRequire } from "node:module";

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(code: string): Promise<unknown>;
}

interface Playwright {
  readonly chromium: {
    launch(
      options: Record<string, unknown>,
    ): Promise<{ newPage(): Promise<Page>; close(): Promise<void> }>;
  };
}

/** What a page is made of. */
export interface PageOptions {
  /** Has `node_modules` with playwright-core. */
  readonly packages: string;
  /** Chromium's program. */
  readonly program: string;
  /** Text of the page. */
  readonly html: string;
  /** The file behind a path; undefined: there is none. */
  fileOf(pathname: string): string | undefined;
}

/** An open page. */
export interface BenchPage {
  /** Value of an expression in the page; promises are awaited there. */
  evaluate(code: string): Promise<unknown>;
  /** Ends browser and server. */
  close(): Promise<void>;
}

const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};
const TYPES: Readonly<Record<string, string>> = {
  mjs: "text/javascript",
  js: "text/javascript",
  wasm: "application/wasm",
};

async function answer(request: Request, { html, fileOf }: PageOptions): Promise<Response> {
  const { pathname } = new URL(request.url);
  const headers = (type: string) => ({ ...ISOLATED, "content-type": type });
  if (pathname === "/") return new Response(html, { headers: headers("text/html") });
  const file = fileOf(pathname);
  if (!file) return new Response(null, { status: 404, headers: ISOLATED });
  const type = TYPES[/\.(\w+)$/.exec(pathname)?.[1] ?? ""] ?? "application/octet-stream";
  return new Response((await Deno.open(file)).readable, { headers: headers(type) });
}

/** Opens a page. */
export async function openPage(options: PageOptions): Promise<BenchPage> {
  const require = createRequire(`${options.packages}/bench.cjs`);
  const { chromium } = require("playwright-core") as Playwright;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => answer(request, options),
  );
  const browser = await chromium.launch({
    executablePath: options.program,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.addr.port}/`);
  return {
    evaluate: (code) => page.evaluate(code),
    async close() {
      await browser.close();
      await server.shutdown();
    },
  };
}

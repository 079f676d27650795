// What is served: one document whose policy allows its own script and style, and nothing else.

import { assertEquals } from "@std/assert";
import { ScriptedEngine } from "../../../tests/support/scripted_engine.ts";
import { createApp } from "../http/app.ts";
import { pageAssets } from "./page.ts";

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${new Uint8Array(digest).toBase64()}'`;
}

Deno.test("pageAssets() has one document, small, with a policy of the hashes of what is inside", async () => {
  const assets = await pageAssets();
  assertEquals([...assets.keys()], ["/"]);
  const { type, bytes, headers } = assets.get("/")!;
  assertEquals(type, "text/html; charset=utf-8");
  assertEquals(bytes.length < 150_000, true, `${bytes.length} bytes`);
  const html = new TextDecoder().decode(bytes);
  const policy = headers["content-security-policy"]!;
  for (const tag of ["script", "style"]) {
    const inside = [...html.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))];
    assertEquals(inside.length, 1);
    assertEquals(policy.includes(`${tag}-src ${await hashOf(inside[0]![1]!)}`), true);
  }
  assertEquals(policy.startsWith("default-src 'none'"), true);
  assertEquals(/unsafe|https?:|\*/.test(policy), false);
  assertEquals(
    /<[^>]*(\son\w+=|\sstyle=|\ssrc=)/.test(html.replace(/<(script|style)>.*?<\/\1>/gs, "")),
    false,
  );
});

Deno.test("the server has the page at /, and nothing at other paths", async () => {
  const app = await createApp({ engine: new ScriptedEngine(), page: pageAssets });
  const get = (path: string, headers = {}) =>
    app.fetch(new Request(`http://x${path}`, { headers }));
  const found = await get("/?x=1");
  const tag = found.headers.get("etag")!;
  assertEquals([found.status, (await found.text()).startsWith("<!doctype html>")], [200, true]);
  assertEquals((await get("/", { "if-none-match": tag })).status, 304);
  const others = [
    ...["/index.html", "/page.gen.json", "/client/main.ts", "/favicon.ico", "//", "/./x", "/%00"],
    ...["/..%2f..%2fdeno.json", "/%2e%2e/%2e%2e/deno.json", "//etc/passwd", "/constructor"],
  ];
  for (const path of others) {
    const response = await get(path);
    assertEquals([path, response.status], [path, 404]);
    await response.body?.cancel();
  }
});

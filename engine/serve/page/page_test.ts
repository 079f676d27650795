// What is served: one document whose policy allows its own script and style, and nothing else.

import { assertEquals } from "@std/assert";
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
  assertEquals(bytes.length < 150 * 1024, true, `${bytes.length} bytes`);
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

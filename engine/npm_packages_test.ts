import { assertEquals } from "@std/assert";
import config from "../deno.json" with { type: "json" };
import { importNpm, npmPackages } from "./npm_packages.ts";

Deno.test("packages have the versions of deno.json, and only what is imported is fetched", () => {
  const imports: readonly string[] = Object.values(config.imports);
  assertEquals(npmPackages().filter((name) => !imports.includes(name)), []);
  assertEquals(config.unstable.includes("npm-lazy-caching"), true);
});

Deno.test("a package and a part of it are imported by name", async () => {
  const { Hono } = await importNpm<typeof import("hono")>("hono");
  const { cors } = await importNpm<typeof import("hono/cors")>("hono", "/cors");
  assertEquals([typeof Hono, typeof cors], ["function", "function"]);
});

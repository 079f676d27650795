// The npm package as its users have it: packed, installed into an empty folder, and used by Node, Bun and Deno, which give
// the tokens that the sources give here. It is made once for all of it.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { generate, load } from "../mod.ts";
import { bytesBelow, PACKAGE_FOLDER, writePackage } from "../tools/build/package.ts";
import { ROOT } from "../tools/support/task.ts";
import { runProgram, runtimePath, runWell } from "./support/npm.ts";

const MODEL = `${ROOT}/tests/fixtures/models/llama_formats/llama.Q8_0.gguf`;

/** What users download, and what that becomes on their disks: more than this is a change that somebody decides on. */
const MOST_BYTES = { packed: 2_500_000, unpacked: 8_000_000 };

/** Tokens, and from where: threads take part, as the notes would say. */
const USE = `
import { generate, load } from "troodon";
import { tokenizerFromJson } from "troodon/tokenizers";
import { loadGraph } from "troodon/graph";
const model = await load(process.argv[2], { threads: 2 });
const { ids } = await generate(model, "abc", { maxTokens: 12, temperature: 0 }).result;
console.log(JSON.stringify({ ids, notes: model.notes, device: model.device }));
model[Symbol.dispose]();
if (![tokenizerFromJson, loadGraph].every((one) => typeof one === "function")) throw new Error();
`;

/** What TypeScript's users write; it must compile under the options that \`tsc --init\` leaves as they are. */
const TYPED = `
import { generate, load, tool, TroodonError } from "troodon";
import { loadGraph, type GraphTensor } from "troodon/graph";
import { tokenizerFromJson } from "troodon/tokenizers";
import { chat } from "troodon/engine";
import { fetchFile, kernelReport } from "troodon/browser";
export async function answer(path: string): Promise<string> {
  const model = await load(path, { threads: 2 });
  try {
    for await (const { text } of generate(model, "The sea is")) console.log(text);
    return (await chat(model, [{ role: "user", content: "hi" }]).result).text;
  } catch (error) {
    if (error instanceof TroodonError) return error.message;
    throw error;
  } finally {
    model[Symbol.dispose]();
  }
}
// @ts-expect-error a number is no path: were the types any, this would compile
load(1);
export { fetchFile, kernelReport, loadGraph, tokenizerFromJson, tool };
export type { GraphTensor };
`;

async function install(folder: string): Promise<number> {
  await writePackage();
  const [{ filename, size }] = JSON.parse(
    await runWell("npm", ["pack", "--json", "--pack-destination", folder], {
      cwd: PACKAGE_FOLDER,
    }),
  );
  await Deno.writeTextFile(`${folder}/package.json`, '{ "private": true, "type": "module" }');
  // Nothing else is fetched: what serving takes is optional.
  await runWell("npm", [
    ...[
      "install",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--omit=optional",
      `./${filename}`,
    ],
  ], { cwd: folder });
  return size;
}

async function expectedIds(): Promise<readonly number[]> {
  using model = await load(MODEL, { threads: 2 });
  return (await generate(model, "abc", { maxTokens: 12, temperature: 0 }).result).ids;
}

Deno.test("the packed tarball, installed into an empty folder", async (t) => {
  const folder = await Deno.makeTempDir();
  try {
    const packed = await install(folder);
    const runtimes = [await runtimePath("node"), await runtimePath("bun")];

    await t.step("has the size that it may have", () => {
      const unpacked = bytesBelow(`${folder}/node_modules/troodon`);
      console.log(`packed ${packed} bytes, unpacked ${unpacked}`);
      assert(packed > 5e5 && packed <= MOST_BYTES.packed, `packed: ${packed}`);
      assert(unpacked <= MOST_BYTES.unpacked, `unpacked: ${unpacked}`);
    });

    await t.step("gives the same tokens in Node, Bun and Deno, on threads", async () => {
      await Deno.writeTextFile(`${folder}/use.js`, USE);
      const ids = await expectedIds();
      const deno = [Deno.execPath(), "run", "-A", "--no-config", "--node-modules-dir=manual"];
      for (const [command, ...args] of [...runtimes.map((path) => [path]), deno]) {
        const out = await runWell(command!, [...args, "use.js", MODEL], { cwd: folder });
        assertEquals(JSON.parse(out), { ids, notes: [], device: "wasm" }, command);
      }
    });

    await t.step("says which Node it needs", async () => {
      const old = 'Object.defineProperty(process, "versions", { value: { node: "20.1.0" } });';
      const use = 'await import("troodon").catch(({ message }) => console.log(message));';
      await Deno.writeTextFile(`${folder}/old.js`, old + use);
      const out = await runWell(runtimes[0]!, ["old.js"], { cwd: folder });
      assertEquals(out.trim(), "troodon needs Node 22 or later, and this is 20.1.0");
    });

    await t.step("is a command", async () => {
      const bin = `${folder}/node_modules/.bin/troodon`;
      for (const command of runtimes) {
        const args = [bin, "tokenize", MODEL, "-t", "abc", "--json"];
        assertStringIncludes(await runWell(command, args), '"ids"', command);
        const version = await runWell(command, [bin, "--version"]);
        assertMatch(version, /^troodon \S+ \((Node\.js|Bun)/);
        const failed = await runProgram(command, [bin, "info", "nothing.gguf"]);
        assertEquals(failed.code, 1);
        assertStringIncludes(failed.err, "no such file or folder", command);
      }
    });

    await t.step("compiles under TypeScript's default options", async () => {
      await Deno.writeTextFile(`${folder}/typed.ts`, TYPED);
      const options = { module: "nodenext", target: "es2023", strict: true, noEmit: true };
      await Deno.writeTextFile(
        `${folder}/tsconfig.json`,
        JSON.stringify({ compilerOptions: { ...options, types: [] }, files: ["typed.ts"] }),
      );
      await runWell(Deno.execPath(), [
        ...["run", "-A", `--config=${ROOT}/deno.json`, "npm:typescript@5.9.3/tsc", "-p", folder],
      ]);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("JSR gets sources alone, and nothing to complain about", async () => {
  const { code, err } = await runProgram(
    Deno.execPath(),
    ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    { cwd: ROOT },
  );
  assertEquals([code, /^(warning|error)\[/m.exec(err)?.[0]], [0, undefined], err);
  const paths = [...err.matchAll(/^\s+file:\/\/(\S+) \(/gm)].map(([, path]) =>
    path!.slice(ROOT.length + 1)
  );
  const wanted = ["mod.ts", "main.ts", "deno.json", "README.md", "LICENSE", "CHANGELOG.md"];
  assertEquals(wanted.filter((path) => !paths.includes(path)), []);
  const surplus = paths.filter((path) =>
    /_test\.ts$|^(tests|bench|tools|examples|docs|dist)\/|^wasm\/gen\/|^engine\/platform\//.test(
      path,
    ) ||
    /^wasm\/assembly\/(?!network\/resize_rules\.ts)/.test(path)
  );
  assertEquals(surplus, []);
});

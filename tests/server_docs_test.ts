// What docs/server.md tells a reader to run: its clients ask a server and get its words, in ten lines each.

import { assert, assertEquals } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { CURL, testServer, withServer } from "./support/http_server.ts";
import { ScriptedEngine } from "./support/scripted_engine.ts";
import { testWith } from "./support/skip.ts";

const text = Deno.readTextFileSync(`${ROOT}/docs/server.md`);

/** Code of a language, in order. */
function blocks(language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))]
    .map(([, code]) => code!);
}

testWith(
  [CURL],
  "the clients of the guide take ten lines each, and print what the server says",
  async () => {
    const { app } = await testServer(new ScriptedEngine(() => ({ pieces: ["Tri", "ceratops"] })));
    const [, curl] = blocks("sh");
    const codes = [curl!, ...blocks("ts")];
    assertEquals(codes.length, 3);
    await withServer(app, async (address) => {
      const folder = await Deno.makeTempDir();
      try {
        for (const [index, code] of codes.entries()) {
          assert(code.trim().split("\n").length <= 11, `${index}: too long`);
          const here = code.replaceAll("http://127.0.0.1:8080", address)
            .replaceAll("smollm2-135m", "m");
          const path = `${folder}/${index}.ts`;
          await Deno.writeTextFile(path, here);
          const [program, args] = index === 0
            ? ["bash", ["-c", here]] as const
            : [Deno.execPath(), [
              "run",
              "-A",
              "--no-check",
              `--config=${ROOT}/deno.json`,
              path,
            ]] as const;
          const { code: exit, stdout, stderr } = await new Deno.Command(program, {
            args: [...args],
          })
            .output();
          const said = new TextDecoder().decode(stdout);
          assertEquals(exit, 0, new TextDecoder().decode(stderr));
          assert(said.indexOf("Tri") >= 0 && said.indexOf("ceratops") > said.indexOf("Tri"), said);
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    });
  },
);

Deno.test("every endpoint stands in the guide", async () => {
  const { ROUTES } = await import("../engine/serve/http/routes.ts");
  const missing = ROUTES.map(({ path }) => path.replace(/:name.*/, "NAME"))
    .filter((path) => !text.includes(path));
  assertEquals(missing, []);
});

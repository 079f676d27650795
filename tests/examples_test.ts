// The examples, as a reader would start them, and the least permissions that a model on disk needs.

import { assert, assertEquals } from "@std/assert";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed, TINY_LLAMA } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const ROOT = new URL("..", import.meta.url);
const EXAMPLES = ["hello", "streaming", "samplers", "embeddings", "cancel"];

async function run(args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...args],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
  }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out!, err: err! };
}

Deno.test("every example is tested here and fits on a screen", () => {
  const files = [...Deno.readDirSync(new URL("examples", ROOT))].map(({ name }) => name);
  assertEquals(files.sort(), EXAMPLES.map((name) => `${name}.ts`).sort());
  for (const name of files) {
    const lines = Deno.readTextFileSync(new URL(`examples/${name}`, ROOT)).split("\n");
    assert(lines.length <= 61, `${name} has ${lines.length} lines`);
  }
});

for (const name of EXAMPLES) {
  testWith([modelNeed("smollm2-135m")], `examples/${name}.ts runs`, async () => {
    const { code, out, err } = await run(["--allow-read", "--allow-env", `examples/${name}.ts`]);
    assertEquals([code, err], [0, ""]);
    assert(out.trim().length > 0, "it printed nothing");
  });
}

Deno.test("a model on disk needs --allow-read of its file and nothing else", async () => {
  const { code, out, err } = await run([
    `--allow-read=${TINY_LLAMA}`,
    "tests/support/generate_once.ts",
    TINY_LLAMA,
  ]);
  assertEquals([code, err], [0, ""]);
  assertEquals(JSON.parse(out).ids.length, 4);
});

Deno.test("without permission to read, the error says what to allow", async () => {
  const { code, err } = await run(["tests/support/generate_once.ts", fixturePath("models/llama")]);
  assertEquals(code, 1);
  assert(err.includes("--allow-read="), err);
});

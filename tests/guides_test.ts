// Each program in the guides of docs/ is run as a reader would: it has to end well and say something. Those that need a
// file or a server of the reader's own say `ignore`, and are type-checked with the others (deno check --doc-only).

import { assert, assertEquals } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const GUIDES = [
  ...[
    "choosing",
    "embeddings",
    "extending",
    "faq",
    "gpu",
    "hub",
    "structured-output",
    "troubleshooting",
  ],
];
const MODELS = ["smollm2-135m", "minilm"];

interface Program {
  readonly name: string;
  readonly text: string;
}

function programsOf(guide: string): Program[] {
  const text = Deno.readTextFileSync(`${ROOT}/docs/${guide}.md`);
  return [...text.matchAll(/^```ts\n([^]*?)^```$/gm)]
    .map(([, text], i) => ({ name: `${guide} ${i + 1}`, text: text! }));
}

const programs = GUIDES.flatMap(programsOf);

Deno.test("every guide that stands alone has a program", () => {
  for (const guide of GUIDES) assert(programsOf(guide).length > 0, guide);
});

Deno.test("guides import the package by its name", () => {
  const guides = [...Deno.readDirSync(`${ROOT}/docs`)].filter(({ name }) => name.endsWith(".md"));
  const byPath = guides.flatMap(({ name }) => programsOf(name.replace(".md", "")))
    .filter(({ text }) => /from "\.\.?\//.test(text));
  assertEquals(byPath.map(({ name }) => name), []);
});

for (const { name, text } of programs) {
  const needs = MODELS.filter((model) => text.includes(`"${model}"`)).map(modelNeed);
  testWith(needs, `the program of docs/${name} runs`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".ts" });
    try {
      await Deno.writeTextFile(path, text.replaceAll('"@troodon/troodon"', `"${ROOT}/mod.ts"`));
      const flags = [
        "--quiet",
        "--no-prompt",
        "--no-check",
        `--config=${ROOT}/deno.json`,
        "--allow-read",
      ];
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", ...flags, "--allow-env", path],
        cwd: ROOT,
        env: { NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp" },
      }).output();
      const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
      assertEquals([code, err], [0, ""]);
      assert(out!.trim() !== "", "it says nothing");
    } finally {
      await Deno.remove(path);
    }
  });
}

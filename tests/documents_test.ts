// README, ARCHITECTURE, CONTRIBUTING and docs/ have to be true: files they name exist, the table of commands has
// every command, and what README tells a reader to run gives what it says.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { COMMANDS } from "../engine/cli/command_line.ts";
import { ROOT } from "../tools/support/task.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const DOCUMENTS = [
  ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"],
  ...[...Deno.readDirSync(`${ROOT}/docs`)].map(({ name }) => `docs/${name}`)
    .filter((name) => name.endsWith(".md")).sort(),
];

function read(name: string): string {
  return Deno.readTextFileSync(`${ROOT}/${name}`);
}

function exists(path: string): boolean {
  try {
    Deno.statSync(`${ROOT}/${path}`);
    return true;
  } catch {
    return false;
  }
}

/** Paths in code spans; `x.ts` stands for any file, `opcodes_*.ts` for several. */
function filesInSpans(text: string): string[] {
  return [...text.matchAll(/`([\w./-]+(?:\.(?:ts|json|md)|\/))`/g)].map(([, path]) => path!)
    .filter((path) => !/^x(_test)?\.ts$/.test(path));
}

/** Paths in links, from the root on. */
function linkedFiles(text: string, document: string): string[] {
  return [...text.matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
    .map(([, path]) => new URL(path!, `file:///${document}`).pathname.slice(1));
}

Deno.test("every file that a document names is there", () => {
  for (const document of [...DOCUMENTS, "bench/results/kernels.md"]) {
    const linked = linkedFiles(read(document), document);
    assertEquals(linked.filter((path) => !exists(path)), [], `links of ${document}`);
    // A guide's code spans name the reader's files.
    if (document.startsWith("docs/")) continue;
    const named = filesInSpans(read(document));
    // ARCHITECTURE leaves out "engine/", and the folder inside a row about that folder.
    const within = [
      "",
      "engine/",
      "engine/graph/",
      "engine/models/",
      "engine/decode/",
      "wasm/",
      "gpu/",
    ];
    const missing = named.filter((path) => !within.some((folder) => exists(folder + path)));
    assertEquals(missing, [], document);
  }
});

/** Folders below one, itself included. */
function foldersOf(folder: string): string[] {
  const below = [...Deno.readDirSync(`${ROOT}/${folder}`)].filter(({ isDirectory }) => isDirectory);
  return [folder, ...below.flatMap(({ name }) => foldersOf(`${folder}/${name}`))];
}

Deno.test("every folder of the product stands in ARCHITECTURE.md", () => {
  const text = read("ARCHITECTURE.md");
  // Without "engine/", and inside a row about a folder without that.
  const names = (path: string) => [path, path.replace(/^engine\//, ""), path.replace(/.*\//, "")];
  const missing = ["engine", "functions", "gpu", "quant", "wasm"].flatMap(foldersOf)
    .filter((path) => !names(path).some((name) => text.includes(`\`${name}/`)));
  assertEquals(missing, []);
});

Deno.test("README's table has every command", () => {
  const commands = Object.keys(COMMANDS);
  const table = read("README.md").split("\n").filter((line) => line.startsWith("| `")).join("\n");
  const missing = commands.filter((name) => !new RegExp(`\`${name}[ \`]`).test(table));
  assertEquals(missing, []);
});

Deno.test("README and the questions count the families of the table", () => {
  const [, table = ""] = read("docs/models.md").split("<!-- families");
  const families = table.split("\n").filter((line) => line.includes("/specs/")).length;
  const counts = ["README.md", "docs/faq.md"]
    .map((name) => /(\d+) (?:model )?families/.exec(read(name))?.[1]);
  assertEquals(counts, [`${families}`, `${families}`]);
});

Deno.test("README's and CONTRIBUTING's tasks and every task's --help exist", async () => {
  const tasks = Object.keys(JSON.parse(read("deno.json")).tasks);
  for (const document of DOCUMENTS) {
    for (const [, name] of read(document).matchAll(/(?:deno|deno@[\d.]+) task ([a-z]+)/g)) {
      assert(tasks.includes(name!), `${document}: deno task ${name}`);
    }
  }
  const pages = await Promise.all(tasks.map((name) => run(["task", "--quiet", name, "--help"])));
  pages.forEach(({ code, out }, i) => {
    assertEquals(code, 0, tasks[i]);
    assertMatch(out, /Usage: (deno task|troodon)/, tasks[i]);
    assertMatch(out, /Examples:/, tasks[i]);
  });
});

async function run(args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    // Mesa's layers complain on stderr where no desktop has set the second.
    env: { NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp" },
    stdin: "null",
  }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out!, err: err! };
}

testWith([modelNeed("smollm2-135m")], "README's first command answers as it should", async () => {
  const line = /^npx -y deno@[\d.]+ (run -A main\.ts generate --prompt "(.+)")$/m.exec(
    read("README.md"),
  );
  const [, command = "", prompt = ""] = line ?? [];
  const args = command.replace(/ "[^"]*"$/, "").split(" ");
  const { code, out, err } = await run([...args, prompt]);
  assertEquals([code, err], [0, ""]);
  assertMatch(prompt, /capital of Japan/);
  assertMatch(out, /Tokyo/);
});

testWith([modelNeed("smollm2-135m")], "README's script runs", async () => {
  const [, script = ""] = /^```ts\n([^]*?)^```$/m.exec(read("README.md")) ?? [];
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(path, script.replaceAll('"./mod.ts"', `"${ROOT}/mod.ts"`));
    const config = `--config=${ROOT}/deno.json`;
    const { code, out, err } = await run(["run", config, "--allow-read", "--allow-env", path]);
    assertEquals([code, err], [0, ""]);
    assert(out.trim().length > 0);
  } finally {
    await Deno.remove(path);
  }
});

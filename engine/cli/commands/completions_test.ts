import { assertEquals, assertStringIncludes } from "@std/assert";
import { troodon } from "../../../tests/support/cli.ts";

const WORDS: [typed: string[], expected: string][] = [
  [["gen"], "generate"],
  [["chat", "--device", "w"], "wasm"],
  [["completions", "f"], "fish"],
  [["spec", "sh"], "show"],
  [["chat", "--max-tok"], "--max-tokens"],
  [["rerank", "ms-marco-minilm-"], "ms-marco-minilm-l6-v2"],
];

Deno.test("bash completes commands, flags, choices and models by what completions writes", async () => {
  const { code, out } = await troodon(["completions", "bash"]);
  assertEquals(code, 0);
  const calls = WORDS.map(([typed]) =>
    `COMP_WORDS=(troodon ${
      typed.join(" ")
    }); COMP_CWORD=${typed.length}; _troodon; echo "\${COMPREPLY[*]}"`
  );
  const bash = new Deno.Command("bash", { args: ["-c", [out, ...calls].join("\n")] });
  const { stdout, stderr } = await bash.output();
  const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
  assertEquals(lines, WORDS.map(([, expected]) => expected), new TextDecoder().decode(stderr));
});

Deno.test("remove completes what is in the cache, part of a fetch too, and nothing else", async () => {
  const folder = await Deno.makeTempDir({ prefix: "it's a cache " });
  try {
    for (const name of ["mine", "hf_owner_repo"]) {
      await Deno.mkdir(`${folder}/${name}-0123456789ab`);
      await Deno.writeTextFile(`${folder}/${name}-0123456789ab/source.txt`, name);
    }
    const { out } = await troodon(["completions", "bash"], { env: { TROODON_CACHE: folder } });
    const call = `COMP_WORDS=(troodon remove ""); COMP_CWORD=2; _troodon; echo "\${COMPREPLY[*]}"`;
    const bash = new Deno.Command("bash", { args: ["-c", `${out}\n${call}`], cwd: folder });
    const { stdout } = await bash.output();
    const words = new TextDecoder().decode(stdout).trim().split(" ").sort();
    assertEquals(words, ["hf_owner_repo", "mine"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("zsh and fish get scripts of their own, other shells a list of those", async () => {
  assertStringIncludes((await troodon(["completions", "zsh"])).out, "bashcompinit");
  const fish = (await troodon(["completions", "fish"])).out;
  assertStringIncludes(
    fish,
    "complete -c troodon -n '__fish_seen_subcommand_from chat' -l seed -r",
  );
  const { code, err } = await troodon(["completions", "fsh"]);
  assertEquals([code, err.includes("takes bash, zsh, fish")], [2, true]);
  assertStringIncludes(err, "Did you mean fish?");
});

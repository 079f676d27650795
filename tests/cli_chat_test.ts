// `troodon chat` as a script meets it: turns, commands and many lines from a pipe, Ctrl-C in the middle of an
// answer. The model is the tiny llama with a template of our own; editing on a keyboard is tested beside
// the line editor.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { TINY_LLAMA } from "./support/models.ts";

const TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n" +
  "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/** The tiny llama in a folder with a chat template. */
async function withChatModel(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const name of ["pytorch_model.bin", "config.json", "tokenizer.model"]) {
      await Deno.copyFile(fixturePath(`models/llama_formats/${name}`), `${folder}/${name}`);
    }
    await Deno.writeTextFile(`${folder}/chat_template.jinja`, TEMPLATE);
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const SHORT = ["--max-tokens", "3", "--ignore-eos"];

Deno.test("chat answers each turn from a pipe and keeps what was said", async () => {
  await withChatModel(async (folder) => {
    const chat = ["chat", folder, ...SHORT, "--json", "--system", "s"];
    const { code, out, err } = await troodon(chat, { stdin: "ab\nc\\\nd\n/reset\nab\n" });
    assertEquals([code, err], [0, "Forgotten.\n"]);
    const answers = out.trimEnd().split("\n").map((line) => JSON.parse(line));
    assertEquals(
      answers.map(({ role, ids }) => [role, ids.length]),
      Array(3).fill(["assistant", 3]),
    );
    assertEquals(answers[2].ids, answers[0].ids); // after /reset it is the first turn again
    // The second turn computes what is new only: its own text, not the first turn's.
    assert(answers[1].stats.prefillTokens < answers[0].stats.prefillTokens + 10);
    const alone = JSON.parse((await troodon(chat, { stdin: "c\\\nd\n" })).out);
    assert(alone.ids.join() !== answers[1].ids.join(), "the first turn made no difference");
  });
});

Deno.test("a text behind the model is the first turn of a chat", async () => {
  await withChatModel(async (folder) => {
    const flags = [...SHORT, "--json"];
    const { out } = await troodon(["chat", folder, "ab", ...flags], { stdin: "c\n" });
    const piped = await troodon(["chat", folder, ...flags], { stdin: "ab\nc\n" });
    const ids = (text: string) => text.trimEnd().split("\n").map((line) => JSON.parse(line).ids);
    assertEquals(ids(out), ids(piped.out));
    assertEquals(ids(out).length, 2);
  });
});

Deno.test("chat tells probabilities as generate does, once they are asked for", async () => {
  await withChatModel(async (folder) => {
    const asked = ["chat", folder, "ab", ...SHORT];
    const alone = ["generate", folder, "ab", ...SHORT, "--logprobs", "2", "--json"];
    const { tokens } = JSON.parse((await troodon(alone)).out);
    const { out, err } = await troodon([...asked, "--logprobs", "2", "--json"]);
    assertEquals([JSON.parse(out).tokens, err], [tokens, ""]);
    const { out: shown } = await troodon(asked, { stdin: "/set logprobs 1\nab\n" });
    assertEquals(shown.match(/^TOKEN +LOGPROB +BEST$/gm)?.length, 1);
  });
});

Deno.test("chat's commands with a slash speak on standard error and are no turns", async () => {
  await withChatModel(async (folder) => {
    const path = `${folder}/talk.json`;
    const stdin =
      `/help\n/chta\n/hlep\n/image none.png\n/system\n"""\na\nb\n"""\n/save ${path}\n/stats\n/quit\nx\n`;
    const { code, out, err } = await troodon(["chat", folder, ...SHORT], { stdin });
    assertEquals(code, 0, err);
    for (
      const text of [
        "/save FILE",
        "/image none.png: no such file",
        "No command /chta",
        "Did you mean /help",
        "2 messages",
      ]
    ) {
      assertStringIncludes(err, text);
    }
    assertMatch(err, /3 tokens, .* tokens\/s/);
    const { messages } = JSON.parse(await Deno.readTextFile(path));
    assertEquals(messages[0], { role: "user", content: "a\nb" });
    assertEquals(out.trimEnd(), messages[1].content.trimEnd());
    const loaded = await troodon(["chat", folder, ...SHORT], {
      stdin: `/load ${path}\n/load ${folder}/config.json\n/load ${folder}/none.json\n`,
    });
    assertEquals([loaded.code, loaded.out], [0, ""]);
    assertMatch(loaded.err, /2 messages read\.\n.*config\.json is no conversation.*\n.*none\.json/);
  });
});

Deno.test("/retry answers once more, /set changes sampling, /model goes on with another model", async () => {
  await withChatModel(async (folder) => {
    const stdin =
      `/retry\nab\n/retry\n/set temperature 2\n/set seed 5\n/set\n/retry\n/set tempratur 1\n` +
      `/set top-k x\n/model\n/model ${folder}/none\n/model ${folder}\nc\n/save ${folder}/t.json\n`;
    const { code, out, err } = await troodon(
      ["chat", folder, ...SHORT, "--json", "--greedy", "--device", "wasm"],
      { stdin },
    );
    assertEquals(code, 0, err);
    const ids = out.trimEnd().split("\n").map((line) => JSON.parse(line).ids.join());
    assertEquals([ids.length, ids[1]], [4, ids[0]]);
    assert(ids[2] !== ids[0], "another temperature made no difference");
    for (
      const text of [
        ...["Nothing was said yet.", "  temperature 2\n  seed 5", "Did you mean --temperature?"],
        ...["--top-k takes a whole number", "Say which: /model NAME", "no such file or folder"],
        "parameters on wasm, remembers",
      ]
    ) {
      assertStringIncludes(err, text);
    }
    const { messages } = JSON.parse(Deno.readTextFileSync(`${folder}/t.json`));
    assertEquals(
      messages.map(({ content }: { content: string }) => content).filter((_: string, i: number) =>
        i % 2 === 0
      ),
      ["ab", "c"],
    );
  });
});

Deno.test("a chat that is longer than the context goes on and says what it leaves out", async () => {
  await withChatModel(async (folder) => {
    const turns = Array.from({ length: 12 }, (_, turn) => `question ${turn}\n`).join("");
    const chat = ["chat", folder, ...SHORT, "--context", "64", "--system", "s"];
    const dropping = await troodon(chat, { stdin: turns });
    assertEquals(dropping.code, 0, dropping.err);
    assertMatch(dropping.err, /The oldest \d+ messages no longer fit and are left out/);
    const sliding = await troodon([...chat, "--context-full", "slide"], { stdin: turns });
    assertEquals([sliding.code, sliding.err], [0, ""]);
    const failing = await troodon([...chat, "--context-full", "error"], { stdin: turns });
    assertEquals(failing.code, 1);
    assertMatch(failing.err, /the prompt has \d+ tokens, and the context holds 64/);
  });
});

Deno.test("Ctrl-C stops the answer and not the program, SIGTERM both", async () => {
  await withChatModel(async (folder) => {
    const endless = ["--max-tokens", "1000000", "--ignore-eos", "--context-full", "slide"];
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `${ROOT}/main.ts`, "chat", folder, ...endless],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const keyboard = child.stdin.getWriter();
    const screen = child.stdout.getReader();
    const remarks = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
    const until = async (wanted: string): Promise<void> => {
      for (let said = ""; !said.includes(wanted);) {
        const { value, done } = await remarks.read();
        assert(!done, `the program ended before it said "${wanted}"`);
        said += value;
      }
    };
    const say = (text: string) => keyboard.write(new TextEncoder().encode(text));
    await say("a\n");
    assert(!(await screen.read()).done, "no answer");
    child.kill("SIGINT");
    await until("Stopped.");
    await say("/stats\n");
    await until("tokens/s");
    await say("b\n");
    await screen.read();
    child.kill("SIGTERM");
    while (!(await screen.read()).done);
    while (!(await remarks.read()).done);
    assertEquals((await child.status).code, 143);
  });
});

Deno.test("a model without a chat template is refused with the other command", async () => {
  const refused = await troodon(["chat", TINY_LLAMA], { stdin: "a\n" });
  assertRefused(refused, 2, /base model.*generate --raw/);
});

// pc-tmpl-12
Deno.test("a broken template is an error, unless another is given or none is needed", async () => {
  await withChatModel(async (folder) => {
    await Deno.writeTextFile(`${folder}/chat_template.jinja`, "{% frobnicate %}");
    await Deno.writeTextFile(`${folder}/own.jinja`, TEMPLATE);
    const answer = ["generate", folder, "-p", "a", ...SHORT];
    const stated = /chat template line 1: .*frobnicate'\. Use another --chat-template/;
    assertRefused(await troodon(answer), 1, stated);
    assertRefused(await troodon(["chat", folder], { stdin: "a\n" }), 1, stated);
    assertRefused(await troodon(["tokenize", folder, "-t", "a", "--chat"]), 1, stated);
    assertEquals((await troodon(["tokenize", folder, "-t", "a"])).code, 0);
    assertEquals((await troodon([...answer, "--raw"])).code, 0);
    const own = ["--chat-template", `${folder}/own.jinja`];
    const asked = JSON.parse((await troodon([...answer, ...own, "--json"])).out);
    assertEquals([asked.ids.length, asked.chatTemplate], [3, own[1]]);
    const counted = await troodon(["tokenize", folder, "-t", "a", "--chat", "--count", ...own]);
    assertEquals(Number(counted.out), asked.stats.prefillTokens);
    assertRefused(await troodon([...answer, "--raw", ...own]), 2, /no template is used/);
  });
});

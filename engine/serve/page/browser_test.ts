// The page in Chromium, before a server by a script: what it shows, what it sends, and what it refuses to do.

import { Buffer } from "node:buffer";
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { assertEquals, assertMatch } from "@std/assert";
import { type ChatServer, chatServer } from "../../../tests/support/chat_server.ts";
import { ScriptedEngine } from "../../../tests/support/scripted_engine.ts";
import { testWith } from "../../../tests/support/skip.ts";
import { createApp } from "../http/app.ts";
import { pageAssets } from "./page.ts";

const CHROMIUM = "/usr/bin/chromium";

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** A page of a profile of its own, its server, and what must stay empty. */
interface Opened {
  readonly page: Page;
  readonly server: ChatServer;
  /** Errors of scripts and of the policy, and addresses outside the server. */
  readonly complaints: string[];
}

type Step = (opened: Opened) => Promise<void>;

const STEPS: (readonly [name: string, step: Step, options: BrowserContextOptions | undefined])[] =
  [];

/** Registers a step; it gets a page that shows the models. */
function step(name: string, run: Step, options?: BrowserContextOptions): void {
  STEPS.push([name, run, options]);
}

async function open(
  browser: Browser,
  options: BrowserContextOptions | undefined,
  run: Step,
): Promise<void> {
  await using server = chatServer();
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const complaints: string[] = [];
  try {
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on("pageerror", ({ message }) => complaints.push(message));
    page.on("console", (message) => {
      if (/Content Security Policy|TrustedHTML/.test(message.text())) {
        complaints.push(message.text());
      }
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(server.url) && !/^(data|blob):/.test(url)) complaints.push(url);
    });
    await page.goto(server.url);
    await page.locator("#model:enabled").waitFor();
    await run({ page, server, complaints });
    assertEquals(complaints, []);
  } finally {
    await context.close();
  }
}

async function ask(page: Page, text: string): Promise<void> {
  await page.fill("#prompt", text);
  await page.press("#prompt", "Enter");
}

/** Asks and waits until the answer is complete. */
async function answered(page: Page, text: string): Promise<void> {
  const before = await page.locator(".message.assistant .foot .buttons").count();
  await ask(page, text);
  await page.locator(".message.assistant .foot .buttons").nth(before).waitFor();
}

/** What axe-core finds. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

const MARKDOWN =
  "# Title\n\n### Deeper\n\nSome **bold** and `code`, [a link](https://example.com/) and\n\n" +
  "1. one\n2. two\n\n- [x] done\n- [ ] open\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quoted\n\n" +
  "```python\ndef f(x):\n    return x  # same\n```\n";

step("streams Markdown, highlights code, tells speed and memory", async ({ page, server }) => {
  const tokens = MARKDOWN.match(/\s*\S+/g)!;
  server.answers.set("show", { tokens, holdAfter: tokens.length - 2 });
  await ask(page, "show");
  const answer = page.locator(".message.assistant");
  await answer.locator("pre").waitFor();
  assertEquals(await page.locator("#stop").isVisible(), true);
  server.go();
  await answer.locator(".foot .figures").waitFor();
  assertEquals(await answer.locator("h3").textContent(), "Title");
  // A level is not skipped.
  assertEquals(await answer.locator("h4").textContent(), "Deeper");
  assertEquals(await answer.locator("strong").textContent(), "bold");
  assertEquals(await answer.locator("ol > li").allTextContents(), ["one", "two"]);
  assertEquals(await answer.locator("tbody td").allTextContents(), ["1", "2"]);
  assertEquals(await answer.locator("input[type=checkbox]").count(), 2);
  assertEquals(await answer.locator("pre .hl-keyword").allTextContents(), ["def", "return"]);
  assertEquals(await answer.locator("pre").textContent(), "def f(x):\n    return x  # same");
  assertEquals(await answer.locator("a").getAttribute("rel"), "noopener noreferrer nofollow");
  const figures = await answer.locator(".foot .figures").textContent();
  assertMatch(figures!, /^smollm2-135m · \d+ tokens · 152 tokens\/s · first after .* · seed 7$/);
  assertMatch((await page.locator("#figures").textContent())!, /152 tokens\/s112 MB/);
  const [body] = server.bodies;
  assertEquals(body.messages, [{ role: "user", content: "show" }]);
  assertEquals([body.model, body.stream, body.logprobs], ["smollm2-135m", true, true]);
  assertEquals(body.stream_options, { include_usage: true });
});

/** What a hostile model may write; each would say so in the title, or ask another host. */
const HOSTILE = [
  "<script>document.title='bad'</script>",
  "<img src=x onerror=\"document.title='bad'\">",
  "<svg onload=\"document.title='bad'\"><style>*{display:none}</style>",
  "<iframe srcdoc=\"<script>parent.document.title='bad'</script>\"></iframe>",
  "[link](javascript:document.title='bad')",
  "[link](java&#x09;script:document.title='bad')",
  "[link](JaVaScRiPt&colon;document.title='bad')",
  "[link](data:text/html,<script>opener.document.title='bad'</script>)",
  "![picture](https://example.invalid/track.png)",
  "![picture](x\" onerror=\"document.title='bad')",
  "<a href=\"javascript:document.title='bad'\">a</a>",
  "<javascript:document.title='bad'>",
  "<form action=https://example.invalid><button>send</button></form>",
  "`` `<img src=x onerror=document.title='bad'>` ``",
  "```html\n<img src=x onerror=\"document.title='bad'\">\n```",
  "```\"><img src=x onerror=document.title='bad'>\ncode\n```",
  "| <img src=x onerror=document.title='bad'> |\n|---|\n| <b onmouseover=document.title='bad'>x</b> |",
  "[ref]: javascript:document.title='bad'\n\n[ref]",
  "&lt;script&gt;document.title='bad'&lt;/script&gt;",
  "<base href=https://example.invalid/><meta http-equiv=refresh content='0;url=https://example.invalid/'>",
  `${">".repeat(3000)} deep\n\n${"[".repeat(3000)}`,
];

step("shows hostile answers as text, and asks no other host", async ({ page, server }) => {
  server.answers.set("attack", { thinking: HOSTILE, tokens: HOSTILE.map((text) => `${text}\n\n`) });
  await answered(page, "attack");
  await page.click(".thinking summary");
  const shown = page.locator("#messages");
  const forbidden = "script, img, svg:not(.icon), iframe, form, style, base, meta, object, embed";
  assertEquals(await shown.locator(forbidden).count(), 0);
  const attributes = await shown.evaluate((root) =>
    [...root.querySelectorAll("*")].flatMap((element) =>
      element.getAttributeNames().filter((name) => name.startsWith("on") || name === "style")
    )
  );
  assertEquals(attributes, []);
  const links = await shown.locator("a").evaluateAll((all) =>
    all.map((a) => (a as HTMLAnchorElement).protocol)
  );
  assertEquals(links.filter((protocol) => !/^(https?|mailto):$/.test(protocol)), []);
  await shown.evaluate((root) => {
    const over = () => new MouseEvent("mouseover", { bubbles: true });
    for (const element of root.querySelectorAll("*")) element.dispatchEvent(over());
  });
  assertMatch(await page.title(), /^attack/);
});

step("a script that is put into the document does not run", async ({ page, complaints }) => {
  const outcome = await page.evaluate(() => {
    const outcomes: string[] = [];
    try {
      document.body.insertAdjacentHTML("beforeend", "<p id=inserted>");
      outcomes.push("markup was taken");
    } catch {
      outcomes.push("markup was refused");
    }
    const script = document.createElement("script");
    try {
      script.textContent = "document.title = 'bad'";
      document.body.append(script);
    } catch {
      outcomes.push("a script was refused");
    }
    return outcomes;
  });
  assertEquals(outcome, ["markup was refused", "a script was refused"]);
  assertEquals(await page.title(), "Troodon");
  const refused = await page.evaluate(() =>
    fetch("https://example.invalid/").then(() => "sent", () => "refused")
  );
  assertEquals(refused, "refused");
  complaints.length = 0;
});

step("stops, and the server sees that the client left", async ({ page, server }) => {
  server.answers.set("long", { tokens: ["one", " two", " three"], holdAfter: 2 });
  await ask(page, "long");
  await page.getByText("one two").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".message.assistant .figures").waitFor();
  assertMatch((await page.locator(".message.assistant .figures").textContent())!, /stopped$/);
  assertEquals(await page.locator(".message.assistant .body").textContent(), "one two");
  for (let i = 0; i < 200 && server.left === 0; i++) await page.waitForTimeout(10);
  assertEquals(server.left, 1);
  await answered(page, "next");
  assertEquals(server.bodies[1].messages.map(({ role }: { role: string }) => role), [
    "user",
    "assistant",
    "user",
  ]);
});

step("edits and regenerates as versions, none of which is lost", async ({ page, server }) => {
  await answered(page, "first");
  await page.getByRole("button", { name: "Another answer" }).click();
  await page.getByText("2 / 2").waitFor();
  assertEquals(server.bodies[1].messages, [{ role: "user", content: "first" }]);
  // An empty box and ArrowUp edit the last question.
  await page.locator("#send").waitFor();
  await page.press("#prompt", "ArrowUp");
  await page.getByRole("textbox", { name: "Your message" }).first().fill("second");
  await page.keyboard.press("Enter");
  await page.getByText("You said: second").waitFor();
  assertEquals(server.bodies[2].messages, [{ role: "user", content: "second" }]);
  await page.locator(".message.user").hover();
  await page.locator(".message.user").getByRole("button", { name: "Earlier version" }).click();
  await page.getByText("You said: first").waitFor();
  const turner = page.locator(".message.assistant .turner");
  assertEquals(await turner.textContent(), "2 / 2");
  // The focus goes along, to the neighbour where there is no way on.
  const focused = () => page.evaluate(() => document.activeElement!.ariaLabel);
  await turner.getByRole("button", { name: "Earlier version" }).press("Enter");
  assertEquals([await turner.textContent(), await focused()], ["1 / 2", "Later version"]);
  await page.keyboard.press("Enter");
  assertEquals([await turner.textContent(), await focused()], ["2 / 2", "Earlier version"]);
});

step("keeps conversations: reload, rename, export, delete and undo", async ({ page }) => {
  await answered(page, "Keep this");
  await page.reload();
  await page.getByText("You said: Keep this").waitFor();
  const row = page.locator("#conversation-list li");
  await row.hover();
  await page.getByRole("button", { name: "Rename “Keep this”" }).click();
  await page.getByRole("textbox", { name: "Title" }).fill("Kept");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Kept", exact: true }).waitFor();
  assertEquals(await page.title(), "Kept – Troodon");
  await row.hover();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export “Kept”" }).click();
  const file = await download;
  assertEquals(file.suggestedFilename(), "kept.json");
  const exported = JSON.parse(await Deno.readTextFile(await file.path()));
  assertEquals(exported.messages.map(({ text }: { text: string }) => text), [
    "Keep this",
    "You said: Keep this",
  ]);
  await row.hover();
  await page.getByRole("button", { name: "Delete “Kept”" }).click();
  await page.getByText("Deleted “Kept”.").waitFor();
  assertEquals(await row.count(), 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("You said: Keep this").waitFor();
  await page.getByRole("button", { name: "New chat" }).click();
  assertEquals(await page.locator(".message").count(), 0);
  await page.getByRole("button", { name: "Kept", exact: true }).click();
  await page.getByText("You said: Keep this").waitFor();
});

step(
  "keeps texts without probabilities where there is little room, and says when there is none",
  async ({ page }) => {
    const refuse = (what: string) =>
      page.evaluate((what) => {
        const put = IDBObjectStore.prototype.put;
        IDBObjectStore.prototype.put = function (value) {
          if (JSON.stringify(value).includes(what)) {
            throw new DOMException("full", "QuotaExceededError");
          }
          return put.call(this, value);
        };
      }, what);
    await refuse('"tokens":[');
    await answered(page, "first");
    await page.reload();
    await page.getByText("You said: first").waitFor();
    assertEquals(await page.getByRole("button", { name: "Token probabilities" }).count(), 0);
    await refuse("second");
    await answered(page, "second");
    await page.getByText("The browser cannot keep this conversation: full").waitFor();
  },
);

step("keeps what came of an answer when the page goes", async ({ page, server }) => {
  server.answers.set("long", { tokens: ["one", " two", " three"], holdAfter: 2 });
  await ask(page, "long");
  await page.getByText("one two").waitFor();
  await page.reload();
  await page.getByText(/^one/).waitFor();
  await page.getByRole("button", { name: "Another answer" }).waitFor();
});

step("goes on with an answer while another conversation is open", async ({ page, server }) => {
  server.answers.set("slow", { tokens: ["one", " two"], holdAfter: 1 });
  await ask(page, "slow");
  await page.getByText("one", { exact: true }).waitFor();
  await page.click("#new-chat");
  await answered(page, "quick");
  server.go();
  await page.getByText("“slow” has its answer.").waitFor();
  assertEquals(await page.locator(".message.assistant .body").textContent(), "You said: quick");
  await page.getByRole("button", { name: "slow", exact: true }).click();
  await page.getByText("one two").waitFor();
});

step("lives without a store, and says so", async ({ page, server }) => {
  await page.addInitScript(
    "delete globalThis.indexedDB; Object.defineProperty(globalThis, 'indexedDB', { value: undefined })",
  );
  await page.goto(server.url);
  await page.locator("#notice", { hasText: "This browser keeps no data" }).waitFor();
  await answered(page, "still");
  await page.getByText("You said: still").waitFor();
});

step("sends what the settings say, and nothing that is not set", async ({ page, server }) => {
  await page.click("#toggle-settings");
  await page.fill("#system", "Be brief.");
  await page.selectOption("#thinking", "off");
  await page.getByLabel("Temperature").fill("0.5");
  await page.getByLabel("Top k").fill("40");
  await page.getByLabel("Seed").fill("9");
  await page.fill("#schema", '{ "type": "object" }');
  await page.getByText("More", { exact: true }).click();
  await page.fill("#stop-texts", "END\nSTOP");
  await page.selectOption("#model", "gemma3-270m");
  await page.uncheck("#probabilities");
  await answered(page, "go");
  const { messages, stream: _, stream_options: __, ...rest } = server.bodies[0];
  assertEquals(messages, [{ role: "system", content: "Be brief." }, {
    role: "user",
    content: "go",
  }]);
  assertEquals(rest, {
    model: "gemma3-270m",
    temperature: 0.5,
    top_p: 0.95,
    top_k: 40,
    seed: 9,
    thinking: false,
    stop: ["END", "STOP"],
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object" }, strict: true },
    },
  });
  assertMatch((await page.locator("#figures").textContent())!, /224 MB/);
  // A new conversation has the same settings, but not what binds its answers.
  await page.click("#new-chat");
  assertEquals(await page.locator("#schema").inputValue(), "");
  assertEquals(await page.getByLabel("Top k").inputValue(), "40");
});

step(
  "says beside its box what is wrong with a setting, and asks nothing",
  async ({ page, server }) => {
    await page.click("#toggle-settings");
    await page.fill("#schema", '{ "type": ');
    assertMatch((await page.locator("#schema-problem").textContent())!, /^This is not JSON: /);
    await page.getByLabel("Temperature").fill("hot");
    assertEquals(
      await page.locator("#set-temperature-problem").textContent(),
      "A number from 0 to 2",
    );
    await page.click("#close-settings");
    await ask(page, "go");
    // The panel opens at the first box that is wrong, and the text stays.
    assertEquals(
      await page.locator("#schema").evaluate((box) => box === document.activeElement),
      true,
    );
    assertEquals(await page.locator("#prompt").inputValue(), "go");
    assertEquals(server.bodies, []);
    await page.fill("#schema", "[1]");
    assertMatch(
      (await page.locator("#schema-problem").textContent())!,
      /^A JSON Schema is an object/,
    );
    await page.getByLabel("Temperature").fill("1");
    await page.fill("#schema", '{ "type": "frobnicate" }');
    const message = "Unsupported type at #/type";
    server.answers.set("go", {
      error: { status: 400, message, param: "response_format.json_schema.schema" },
    });
    await ask(page, "go");
    await page.locator(".problem").waitFor();
    assertEquals(await page.locator("#schema-problem").textContent(), `${message}.`);
  },
);

step(
  "shows token probabilities and alternatives by pointer, key and touch",
  async ({ page, server }) => {
    server.answers.set("words", { tokens: ["One", " two", " three", "\n"] });
    await answered(page, "words");
    await page.getByRole("button", { name: "Token probabilities" }).click();
    const tokens = page.locator(".token");
    assertEquals(await tokens.count(), 4);
    await tokens.nth(1).hover();
    const tooltip = page.getByRole("tooltip");
    assertEquals(
      await tooltip.locator("li").allInnerTexts().then((rows) =>
        rows.map((row) => row.split("\n")[0])
      ),
      ["␣two", "␣other", "↵"],
    );
    assertMatch((await tooltip.textContent())!, /␣two72%␣other14%↵7%/);
    await page.mouse.move(5, 400);
    await tooltip.waitFor({ state: "hidden" });
    await tokens.nth(0).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("End");
    assertEquals(await tokens.nth(3).getAttribute("aria-label"), "↵, 18%");
    assertEquals(await tooltip.isVisible(), true);
    await page.keyboard.press("Escape");
    assertEquals(await tooltip.isVisible(), false);
  },
);

step(
  "copies answers and code, also from an origin that is not secure",
  async ({ page, server }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    server.answers.set("show", { tokens: ["**a**\n\n", "```js\nlet x\n```"] });
    await answered(page, "show");
    const clipboard = await page.evaluateHandle(() => navigator.clipboard);
    const copied = () => clipboard.evaluate((clipboard) => clipboard.readText());
    await page.getByRole("button", { name: "Copy the code" }).click();
    assertEquals(await copied(), "let x");
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    const button = page.locator(".assistant").getByRole("button", { name: "Copy the text" });
    await button.click();
    assertEquals(await copied(), "**a**\n\n```js\nlet x\n```");
    assertEquals(await button.evaluate((button) => button === document.activeElement), true);
  },
);

step("follows an answer until its reader scrolls away", async ({ page, server }) => {
  const lines = (count: number) => Array.from({ length: count }, (_, i) => `line ${i}\n\n`);
  server.answers.set("long", {
    tokens: [...lines(40), "half", ...lines(40), "whole"],
    holdAfter: 41,
  });
  const thread = page.locator("#thread");
  const fromEnd = () =>
    thread.evaluate(({ scrollHeight, scrollTop, clientHeight }) =>
      scrollHeight - scrollTop - clientHeight
    );
  await ask(page, "long");
  await page.getByText("half").waitFor();
  await page.waitForFunction(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#thread")!;
    return scrollTop > 0 && scrollHeight - scrollTop - clientHeight < 2;
  });
  await thread.hover();
  await page.mouse.wheel(0, -300);
  await page.getByRole("button", { name: "Go to the end" }).waitFor();
  const top = await thread.evaluate(({ scrollTop }) => scrollTop);
  server.go();
  await page.locator(".assistant .figures").waitFor();
  assertEquals(await thread.evaluate(({ scrollTop }) => scrollTop), top);
  await page.getByRole("button", { name: "Go to the end" }).click();
  assertEquals(await fromEnd() < 2, true);
});

step("folds thinking", async ({ page, server }) => {
  server.answers.set("why", { thinking: ["Let me ", "think."], tokens: ["Because."] });
  await answered(page, "why");
  const thinking = page.locator("details.thinking");
  assertMatch((await thinking.locator("summary").textContent())!, /^Thought for /);
  assertEquals(await page.getByText("Let me think.").isVisible(), false);
  await thinking.locator("summary").click();
  assertEquals(await page.getByText("Let me think.").isVisible(), true);
});

step("shows errors plainly, with a way on", async ({ page, server }) => {
  const error = { status: 400, message: "Cannot use temperature 9", param: "temperature" };
  server.answers.set("ask", { error });
  await ask(page, "ask");
  const problem = page.locator(".problem[role=alert]");
  await problem.waitFor();
  assertEquals(await problem.locator("p").allTextContents(), [
    "Cannot use temperature 9.",
    "Field: temperature",
  ]);
  server.answers.set("ask", {
    error: { status: 429, message: "Too many answers" },
    headers: { "retry-after": "3" },
  });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Too many answers. Try again in 3 s.").waitFor();
  server.answers.set("ask", { tokens: ["half"], isCut: true });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The server ended the answer before it was complete.").waitFor();
  assertEquals(await page.locator(".message.assistant .markdown").last().textContent(), "half");
  await page.context().setOffline(true);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The server cannot be reached. Is it still running?").waitFor();
  await page.context().setOffline(false);
  server.answers.delete("ask");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("You said: ask").waitFor();
});

/** A red pixel. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

step("shows a picture to a model that sees", async ({ page, server }) => {
  const attach = page.getByRole("button", { name: "Show a picture" });
  assertEquals(await attach.isVisible(), false);
  await page.selectOption("#model", "gemma3-270m");
  await attach.waitFor();
  const buffer = Buffer.from(PICTURE, "base64");
  const choose = () =>
    page.setInputFiles("#picture", { name: "red.png", mimeType: "image/png", buffer });
  await choose();
  await page.getByRole("button", { name: "Remove the picture" }).click();
  assertEquals(await page.locator("#attached img").count(), 0);
  await choose();
  await page.locator("#attached img").waitFor();
  assertEquals(await findings(page), []);
  await answered(page, "which colour?");
  const url = `data:image/png;base64,${PICTURE}`;
  const content = [{ type: "image_url", image_url: { url } }, {
    type: "text",
    text: "which colour?",
  }];
  assertEquals(server.bodies[0].messages, [{ role: "user", content }]);
  assertEquals(await page.locator("#attached img").count(), 0);
  const shown = page.locator(".message.user img");
  assertEquals(await shown.evaluate((img) => (img as HTMLImageElement).naturalWidth), 1);
  // It stays with its question: when that is kept, and when it is asked in other words.
  await page.reload();
  await shown.waitFor();
  await page.press("#prompt", "ArrowUp");
  await page.getByRole("textbox", { name: "Your message" }).first().fill("which one?");
  await page.keyboard.press("Enter");
  await page.getByText("You said: which one?").waitFor();
  assertEquals(server.bodies[1].messages[0].content[0], content[0]);
  const large = Buffer.alloc((10 << 20) + 1);
  await page.setInputFiles("#picture", { name: "a.png", mimeType: "image/png", buffer: large });
  await page.getByText("A picture has at most 10 MB.").waitFor();
});

step("asks for an API key when the server wants one", async ({ page, server }) => {
  server.key = "secret";
  await page.reload();
  const dialog = page.getByRole("dialog", { name: "API key" });
  await dialog.waitFor();
  await dialog.getByLabel("Key", { exact: true }).fill("wrong");
  await page.keyboard.press("Enter");
  await page.locator("#key-reason", { hasText: "Incorrect API key provided" }).waitFor();
  await dialog.getByLabel("Key", { exact: true }).fill("secret");
  await page.keyboard.press("Enter");
  await page.locator("#model:enabled").waitFor();
  await answered(page, "hello");
  // It is the tab's until the user wants it kept.
  assertEquals(await page.evaluate(() => localStorage.getItem("troodon.key")), null);
  await page.reload();
  await page.locator("#model:enabled").waitFor();
});

step("all can be done by keys", async ({ page, server }) => {
  await page.keyboard.press("Control+/");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+,");
  assertEquals(await page.locator("#settings").isVisible(), true);
  await page.keyboard.press("Control+,");
  await page.keyboard.press("Control+b");
  assertEquals(await page.locator("#conversations").isVisible(), false);
  await page.keyboard.press("Shift+Escape");
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  await page.keyboard.press("Enter");
  await page.locator(".message.assistant .figures").waitFor();
  assertEquals(server.bodies[0].messages[0].content, "one\ntwo");
  await page.keyboard.press("Control+Shift+Enter");
  await page.getByText("2 / 2").waitFor();
  await page.keyboard.press("Control+Shift+O");
  assertEquals(await page.locator(".message").count(), 0);
});

step("tells a screen reader of answers by sentences", async ({ page, server }) => {
  server.answers.set("tell", { tokens: ["First one.", " Second", " one.", " **Third**"] });
  await answered(page, "tell");
  const said = page.getByRole("log").locator("p");
  await said.last().getByText("Answer complete").waitFor();
  assertEquals(await said.allTextContents(), [
    "Answering",
    "First one.",
    "Second one.",
    "Third",
    "Answer complete",
  ]);
});

step("fits a phone of 320 pixels", async ({ page, server }) => {
  const tokens = [...MARKDOWN.match(/\s*\S+/g)!, `\n\n${"wide ".repeat(3)}${"w".repeat(200)}`];
  server.answers.set("show", { tokens });
  await answered(page, "show");
  const widths = () =>
    page.evaluate(() => {
      const wide = [...document.querySelectorAll("main *")].filter((element) =>
        element.getBoundingClientRect().right > innerWidth + 1 &&
        !element.closest("pre, .table, .visually-hidden")
      );
      return [document.documentElement.scrollWidth, ...wide.map(({ className }) => className)];
    });
  assertEquals(await widths(), [320]);
  assertEquals(await page.locator("#conversations").isVisible(), false);
  await page.tap("#toggle-conversations");
  await page.getByRole("button", { name: "show", exact: true }).waitFor();
  // What lies below the panel takes no focus.
  assertEquals(await page.locator("main").evaluate((main) => (main as HTMLElement).inert), true);
  await page.keyboard.press("Escape");
  assertEquals(await page.locator("#conversations").isVisible(), false);
  await page.tap("#toggle-settings");
  assertEquals(await findings(page), []);
  await page.tap("#close-settings");
  await page.getByRole("button", { name: "Token probabilities" }).tap();
  await page.locator(".token").nth(2).tap();
  await page.getByRole("tooltip").waitFor();
  assertEquals(await findings(page), []);
}, { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });

for (const colorScheme of ["light", "dark"] as const) {
  step(`axe-core finds nothing, ${colorScheme}`, async ({ page, server }) => {
    assertEquals(await findings(page), []);
    server.answers.set("show", { thinking: ["Hm."], tokens: MARKDOWN.match(/\s*\S+/g)! });
    server.answers.set("fail", { error: { status: 500, message: "It broke", param: "x" } });
    await answered(page, "show");
    await page.click(".thinking summary");
    await page.getByRole("button", { name: "Another answer" }).click();
    await page.getByText("2 / 2").waitFor();
    await answered(page, "fail");
    await page.click("#toggle-settings");
    await page.getByText("More", { exact: true }).click();
    await page.fill("#schema", "{");
    assertEquals(await findings(page), []);
    await page.getByRole("button", { name: "Token probabilities" }).click();
    await page.locator(".token").nth(3).hover();
    await page.keyboard.press("Control+/");
    assertEquals(await findings(page), []);
    await page.keyboard.press("Escape");
    await page.click("#show-key");
    assertEquals(await findings(page), []);
  }, { colorScheme });
}

step("changes its theme, and remembers", async ({ page }) => {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.click("#theme");
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  const dark = await background();
  assertEquals(light === dark, false);
  await page.reload();
  assertEquals(await background(), dark);
});

step("talks to the server that it is part of", async ({ page, complaints }) => {
  const engine = new ScriptedEngine(({ options: { schema } }) => ({
    ...schema ? { pieces: ['{ "a":', " 1 }"] } : { thinking: ["Hm."], pieces: ["Well", "."] },
  }));
  const app = await createApp({ engine, keys: ["secret"], page: pageAssets });
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    app.fetch,
  );
  const url = `http://127.0.0.1:${server.addr.port}/`;
  await page.goto(url);
  await page.getByLabel("Key", { exact: true }).fill("secret");
  await page.keyboard.press("Enter");
  await page.locator("#model:enabled").waitFor();
  await answered(page, "hello");
  assertEquals(await page.locator(".message.assistant .body").textContent(), "Well.");
  assertEquals(await page.getByText("Hm.").count(), 1);
  assertMatch(
    (await page.locator(".message.assistant .figures").textContent())!,
    /^m · 3 tokens · 50 tokens\/s/,
  );
  await page.getByRole("button", { name: "Token probabilities" }).click();
  assertEquals(await page.locator(".token").allTextContents(), ["Hm.", "Well", "."]);
  await page.click("#toggle-settings");
  await page.fill("#schema", '{ "type": "object" }');
  await answered(page, "JSON");
  assertEquals(await page.locator("pre .hl-attr").allTextContents(), ['"a"']);
  assertEquals(complaints.filter((complaint) => !complaint.startsWith(url)), []);
  complaints.length = 0;
});

testWith(
  [{ what: "Chromium", present: isThere(CHROMIUM), remedy: "apt-get install chromium" }],
  "the page in Chromium",
  async (t) => {
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    try {
      for (const [name, run, options] of STEPS) {
        await t.step(name, () => open(browser, options, run));
      }
    } finally {
      await browser.close();
    }
  },
);

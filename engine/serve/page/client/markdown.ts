// Markdown as elements, while it is being written. marked takes the text apart; the elements are made here, of a
// fixed list: HTML in an answer is shown as the text it is, links lead to the web or to mail in a tab of their own, and
// pictures are links, because the page loads nothing from elsewhere. Headings are put in order below those of the page.

import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { type Child, copyButton, html } from "./dom.ts";
import { highlighted } from "./highlight.ts";

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®" },
  ...{ hellip: "…", mdash: "—", ndash: "–", rarr: "→", larr: "←", times: "×", deg: "°", euro: "€" },
};

/** A text without character references; those of no known name stay as they are. */
function resolved(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w{2,8}));/g,
    (all, ten, sixteen, name) => {
      if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name]! : all;
      const code = ten === undefined ? parseInt(sixteen, 16) : Number(ten);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
    },
  );
}

/** Where a link may lead, or undefined. */
function address(href: string): string | undefined {
  const url = URL.parse(resolved(href));
  return url && /^(https?|mailto):$/.test(url.protocol) ? url.href : undefined;
}

function link(href: string, children: readonly Child[]): Node {
  const to = address(href);
  if (to === undefined) return html("span", {}, ...children);
  return html(
    "a",
    { href: to, target: "_blank", rel: "noopener noreferrer nofollow" },
    ...children,
  );
}

function inline(tokens: readonly Token[] | undefined): Child[] {
  return (tokens as readonly MarkedToken[] | undefined ?? []).map((token): Child => {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return html(token.type, {}, ...inline(token.tokens));
      case "codespan":
        return html("code", {}, token.text);
      case "br":
        return html("br");
      case "link":
        return link(token.href, inline(token.tokens));
      case "image":
        return link(token.href, [`🖼 ${resolved(token.text) || "picture"}`]);
      case "text":
        return token.tokens ? html("span", {}, ...inline(token.tokens)) : resolved(token.text);
      case "checkbox":
        return checkbox(token.checked);
      case "escape":
        return token.text;
      default:
        return token.raw;
    }
  });
}

function checkbox(isChecked: boolean): Node {
  const label = isChecked ? "done" : "to do";
  return html("input", {
    type: "checkbox",
    checked: isChecked,
    disabled: true,
    "aria-label": label,
  });
}

function codeBlock({ text, lang = "" }: Tokens.Code): Node {
  const language = /^[\w+#.-]*/.exec(lang)![0].toLowerCase();
  const name = language === "" ? "Code" : `Code in ${language}`;
  return html(
    "div",
    { class: "code" },
    html(
      "div",
      { class: "code-head" },
      language || "text",
      copyButton("Copy the code", () => text),
    ),
    html(
      "pre",
      { tabindex: 0, role: "group", "aria-label": name },
      html("code", {}, ...highlighted(text, language)),
    ),
  );
}

function table({ header, rows }: Tokens.Table): Node {
  const cells = (tag: "th" | "td", row: readonly Tokens.TableCell[]) =>
    html(
      "tr",
      {},
      ...row.map(({ tokens, align }) =>
        html(tag, { class: align ?? undefined, scope: tag === "th" && "col" }, ...inline(tokens))
      ),
    );
  return html(
    "div",
    { class: "table", tabindex: 0, role: "group", "aria-label": "Table" },
    html(
      "table",
      {},
      html("thead", {}, cells("th", header)),
      html("tbody", {}, ...rows.map((row) => cells("td", row))),
    ),
  );
}

/** One block; `level` is that of a heading, 0 where a heading is none of the page's outline. */
function block(token: MarkedToken, level = 0): Child {
  switch (token.type) {
    case "space":
    case "def":
      return undefined;
    case "heading":
      return level === 0
        ? html("p", {}, html("strong", {}, ...inline(token.tokens)))
        : html(`h${level as 3 | 4 | 5 | 6}`, {}, ...inline(token.tokens));
    case "paragraph":
      return html("p", {}, ...inline(token.tokens));
    case "code":
      return codeBlock(token);
    case "blockquote":
      return html("blockquote", {}, ...blocks(token.tokens));
    case "list": {
      const items = token.items.map((item) =>
        html("li", { class: item.task && "task" }, ...blocks(item.tokens))
      );
      if (!token.ordered) return html("ul", {}, ...items);
      return html("ol", { start: token.start === 1 ? undefined : token.start }, ...items);
    }
    case "table":
      return table(token);
    case "hr":
      return html("hr");
    case "checkbox":
      return checkbox(token.checked);
    case "text":
      return html("span", {}, ...inline(token.tokens ?? [token]));
    default:
      return html("p", { class: "raw" }, token.raw.trim());
  }
}

function blocks(tokens: readonly Token[]): Child[] {
  return (tokens as readonly MarkedToken[]).map((token) => block(token));
}

/** Headings begin below the page's title and the message's, and none skips a level. */
const FIRST_LEVEL = 3, LAST_LEVEL = 6;

/** What costs marked more than linear time, outside of code: such a block is shown as it is. */
const HEAVY = /\S{4000}|[ \t]{2000}|^(?:[>*+-] ?){100}/m;

/** A block that is shown. */
interface Shown {
  /** What it was made of. */
  readonly key: string;
  readonly raw: string;
  /** Level of the last heading so far. */
  readonly level: number;
  readonly node: Child;
}

/**
 * Markdown that grows. What has not changed keeps its elements, and with them focus and selection; while an answer
 * comes only its last block is read again, since those before it are closed.
 */
export class Markdown {
  readonly element: HTMLElement = html("div", { class: "markdown", dir: "auto" });
  #shown: Shown[] = [];
  #text = "";
  #isComplete = false;
  #links: Lexer["tokens"]["links"] = {};

  /** Shows a text instead of the one before; what is complete is read as a whole, so that references go both ways. */
  update(text: string, { isComplete }: { readonly isComplete: boolean }): void {
    const plain = text.replace(/\r\n?/g, "\n");
    if (plain === this.#text && isComplete === this.#isComplete) return;
    this.#isComplete = isComplete;
    const isLonger = !isComplete && plain.startsWith(this.#text);
    this.#text = plain;
    const kept = isLonger ? Math.max(0, this.#shown.findLastIndex(({ node }) => node)) : 0;
    const before = this.#shown.slice(0, kept);
    const tail = plain.slice(before.reduce((sum, { raw }) => sum + raw.length, 0));
    if (kept === 0) this.#links = {};
    let level = before.at(-1)?.level ?? FIRST_LEVEL - 1;
    const tokens = this.#read(tail);
    // What a reference leads to may come long after it.
    const links = Object.keys(this.#links).length;
    for (const [index, token] of tokens.entries()) {
      if (token.type === "heading") {
        level = Math.min(token.depth + FIRST_LEVEL - 1, level + 1, LAST_LEVEL);
      }
      const key = `${links} ${level} ${token.raw}`;
      if (this.#shown[kept + index]?.key === key) continue;
      this.#drop(kept + index);
      const node = block(token, level);
      this.#shown.push({ key, raw: token.raw, level, node });
      if (node !== undefined) this.element.append(node);
    }
    this.#drop(kept + tokens.length);
  }

  #read(text: string): readonly MarkedToken[] {
    const lexer = new Lexer({ gfm: true, breaks: true });
    Object.assign(lexer.tokens.links, this.#links);
    try {
      if (!HEAVY.test(text) || /^(```|~~~)/.test(text)) {
        const tokens = lexer.lex(text);
        this.#links = tokens.links;
        return tokens as Token[] as MarkedToken[];
      }
    } catch {
      // Nested beyond the stack.
    }
    return [{ type: "html", raw: text, text, pre: false, block: true }];
  }

  /** Takes away what was shown from the block of this number on. */
  #drop(from: number): void {
    for (const { node } of this.#shown.splice(from)) (node as ChildNode | undefined)?.remove();
  }
}

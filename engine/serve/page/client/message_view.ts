// One message on the screen: what was asked, or an answer with its thinking, its figures and what can be done with it.

import type { AnswerFigures, Message } from "./conversation.ts";
import { type Child, copyButton, html, icon, iconButton } from "./dom.ts";
import { Markdown } from "./markdown.ts";
import { tokenView } from "./tokens.ts";

/** What a message asks of the page. */
export interface MessageActions {
  /** Asks again with another text. */
  edit(message: Message, text: string): void;
  /** Asks for another answer in place of this one. */
  regenerate(message: Message): void;
  /** Shows the version so many places on. */
  turn(message: Message, by: number): void;
}

/** Where a message stands among its versions, and whether it is being written. */
export interface MessageState {
  readonly version: number;
  readonly versions: number;
  readonly isRunning: boolean;
  /** Whether the conversation is waiting for an answer. */
  readonly isBusy: boolean;
}

const ENDS: Readonly<Record<string, string>> = {
  stopped: "stopped",
  length: "cut at the longest answer",
  content_filter: "withheld by a filter",
};

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Tokens a second, for people. */
export function speed(perSecond: number): string {
  const maximumFractionDigits = perSecond < 10 ? 1 : 0;
  return `${perSecond.toLocaleString("en", { maximumFractionDigits })} tokens/s`;
}

/** How an answer went, in a line. */
function figuresLine({ model, figures, finish = "" }: Message): string {
  const { tokens, perSecond, firstMs, seed }: Partial<AnswerFigures> = figures ?? {};
  return [
    model,
    tokens && `${tokens.toLocaleString("en")} ${tokens === 1 ? "token" : "tokens"}`,
    perSecond && speed(perSecond),
    firstMs !== undefined && `first after ${seconds(firstMs)}`,
    seed !== undefined && `seed ${seed}`,
    ENDS[finish],
  ].filter(Boolean).join(" · ");
}

/** A message and its elements. */
export class MessageView {
  readonly message: Message;
  readonly element: HTMLElement;
  readonly #actions: MessageActions;
  readonly #body = html("div", { class: "body" });
  readonly #foot = html("div", { class: "foot" });
  readonly #markdown = new Markdown();
  readonly #thinking = new Markdown();
  readonly #thinkingTitle = html("summary");
  readonly #thinkingBox = html(
    "details",
    { class: "thinking", hidden: true },
    this.#thinkingTitle,
    this.#thinking.element,
  );
  /** The text of a question. */
  readonly #asked: Element | undefined;
  #wasRunning = false;
  #showsTokens = false;
  #tokens: Element | undefined;

  constructor(message: Message, actions: MessageActions) {
    this.message = message;
    this.#actions = actions;
    const isAnswer = message.role === "assistant";
    if (!isAnswer) {
      const { picture: src } = message;
      this.#asked = html(
        "div",
        { class: "asked", dir: "auto" },
        src === undefined ? undefined : html("img", { src, alt: "Your picture" }),
        html("p", {}, message.text),
      );
      this.#show(this.#asked);
    }
    const title = isAnswer ? `Answer of ${message.model ?? "the model"}` : "You asked";
    this.element = html(
      "article",
      { class: `message ${message.role}` },
      html("h2", { class: "visually-hidden" }, title),
      isAnswer ? this.#thinkingBox : undefined,
      this.#body,
      this.#foot,
    );
  }

  /** Shows the message as it stands. */
  update(state: MessageState): void {
    this.grow(state.isRunning);
    const { message } = this;
    this.element.classList.toggle("running", state.isRunning);
    if (state.isRunning) {
      this.#wasRunning = true;
      return this.#foot.replaceChildren();
    }
    this.#foot.replaceChildren(...[
      message.role === "assistant" ? this.#problem(state) : undefined,
      this.#buttons(state),
    ].filter((part) => part !== undefined));
    this.#wasRunning = false;
  }

  /** Shows what an answer has become while it is written; questions stay as they are. */
  grow(isRunning: boolean): void {
    const { message } = this;
    if (message.role === "user") return;
    this.#showThinking(isRunning);
    if (this.#showsTokens && message.tokens && !isRunning) {
      this.#tokens ??= tokenView(message.tokens, message.id);
      return this.#show(this.#tokens);
    }
    const text = message.isJson ? `\`\`\`json\n${message.text}\n\`\`\`` : message.text;
    if (message.text !== "") this.#markdown.update(text, { isComplete: !isRunning });
    const isWaiting = isRunning && message.text === "";
    const dots = html("p", { class: "dots" }, html("span"), html("span"), html("span"));
    this.#show(isWaiting ? dots : this.#markdown.element);
  }

  #show(shown: Element): void {
    if (this.#body.firstChild !== shown) this.#body.replaceChildren(shown);
  }

  #showThinking(isRunning: boolean): void {
    const { thinking, text, figures } = this.message;
    this.#thinkingBox.hidden = !thinking;
    if (!thinking) return;
    const isThinking = isRunning && text === "";
    this.#thinking.update(thinking, { isComplete: !isThinking });
    const time = figures?.thinkingMs;
    this.#thinkingTitle.textContent = isThinking
      ? "Thinking…"
      : time === undefined
      ? "Thoughts"
      : `Thought for ${seconds(time)}`;
  }

  #problem({ isBusy }: MessageState): HTMLElement | undefined {
    const { problem } = this.message;
    if (problem === undefined) return undefined;
    return html(
      "div",
      // Said when it happens, and not again whenever it is drawn.
      { class: "problem", role: this.#wasRunning && "alert" },
      html("p", {}, problem.message),
      problem.param === undefined
        ? undefined
        : html("p", {}, "Field: ", html("code", {}, problem.param)),
      html(
        "button",
        {
          type: "button",
          disabled: isBusy,
          click: () => this.#actions.regenerate(this.message),
        },
        icon("redo"),
        "Try again",
      ),
    );
  }

  #buttons(state: MessageState): HTMLElement {
    const { message } = this;
    const isAnswer = message.role === "assistant";
    const parts: Child[] = [
      state.versions > 1 ? this.#turner(state) : undefined,
      message.text === "" ? undefined : copyButton("Copy the text", () => message.text),
      message.problem ? undefined : isAnswer
        ? iconButton("redo", "Another answer", {
          disabled: state.isBusy,
          click: () => this.#actions.regenerate(message),
        })
        : iconButton("edit", "Edit and ask again", {
          disabled: state.isBusy,
          class: "icon-button edit",
          click: () => this.edit(),
        }),
      message.tokens?.length ? this.#tokenSwitch(state) : undefined,
      isAnswer ? html("span", { class: "figures" }, figuresLine(message)) : undefined,
    ];
    return html("div", { class: "buttons" }, ...parts);
  }

  #turner({ version, versions, isBusy }: MessageState): HTMLElement {
    const turn = (by: number) => () => this.#actions.turn(this.message, by);
    return html(
      "span",
      { class: "turner" },
      iconButton("previous", "Earlier version", {
        disabled: isBusy || version === 0,
        click: turn(-1),
      }),
      html("span", {}, `${version + 1} / ${versions}`),
      iconButton("next", "Later version", {
        disabled: isBusy || version === versions - 1,
        click: turn(1),
      }),
    );
  }

  #tokenSwitch(state: MessageState): HTMLElement {
    return iconButton("bars", "Token probabilities", {
      "aria-pressed": String(this.#showsTokens),
      class: "icon-button probabilities",
      click: () => {
        this.#showsTokens = !this.#showsTokens;
        this.update(state);
        this.#foot.querySelector<HTMLElement>(".probabilities")!.focus();
      },
    });
  }

  /** Puts a box with the text of the question in its place. */
  edit(): void {
    const { message } = this;
    const box = html("textarea", { "aria-label": "Your message", rows: 3, dir: "auto" });
    box.value = message.text;
    const close = () => {
      this.#show(this.#asked!);
      this.#foot.hidden = false;
      this.#foot.querySelector<HTMLElement>(".edit")?.focus();
    };
    const send = () => {
      close();
      if (box.value.trim() !== "") this.#actions.edit(message, box.value);
    };
    box.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.#foot.hidden = true;
    this.#body.replaceChildren(html(
      "div",
      { class: "editor" },
      box,
      html(
        "div",
        { class: "row" },
        html("button", { type: "button", click: close }, "Cancel"),
        html("button", { type: "button", class: "primary", click: send }, "Send"),
      ),
    ));
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }
}

// The chat page: puts its parts together. What each part shows and asks stands in its own file; the state is chat.ts's.

import { Announcer } from "./announcer.ts";
import { Api, type ApiError, type ModelEntry } from "./api.ts";
import { Chat, type ChatView } from "./chat.ts";
import { Composer } from "./composer.ts";
import { type Conversation, type Message, pathTo } from "./conversation.ts";
import { drawIcons, find, html } from "./dom.ts";
import { speed } from "./message_view.ts";
import { keptKey, KeyDialog } from "./key_dialog.ts";
import { Panel } from "./panels.ts";
import { DEFAULTS, schemaProblem, type Settings } from "./settings.ts";
import { SettingsPanel } from "./settings_panel.ts";
import { bindShortcuts } from "./shortcuts.ts";
import { Sidebar } from "./sidebar.ts";
import { openStore, readValue, writeValue } from "./store.ts";
import { bindTheme } from "./theme.ts";
import { Thread } from "./thread.ts";

/** How long a notice with a way to undo stays. */
const NOTICE_MS = 10_000;

const ENDS: Readonly<Record<string, string>> = {
  stopped: "Stopped",
  length: "Answer cut at its longest",
};

/** A number of bytes for people. */
function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** The page. */
class Page implements ChatView {
  readonly #api = new Api();
  readonly #announcer = new Announcer(find("#announcements"));
  readonly #model = find<HTMLSelectElement>("#model");
  readonly #keyDialog = new KeyDialog((key) => {
    this.#api.key = key;
    void this.#findModels();
  });
  readonly #conversationsPanel = new Panel("conversations", true);
  readonly #settingsPanel = new Panel("settings", false);
  readonly #settings = new SettingsPanel((settings) => {
    const { model } = this.#chat.conversation.settings;
    this.#set({ ...settings, ...model !== undefined && { model } });
  });
  readonly #composer: Composer;
  readonly #thread: Thread;
  readonly #chat: Chat;
  readonly #sidebar: Sidebar;
  readonly #storeProblem: string | undefined;
  #shown: Conversation | undefined;
  #models: readonly ModelEntry[] = [];
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(store: Awaited<ReturnType<typeof openStore>>) {
    this.#api.key = keptKey();
    this.#storeProblem = store.problem;
    const settings: Settings = readValue("settings", DEFAULTS);
    const chat = new Chat({ api: this.#api, store, view: this, settings });
    this.#chat = chat;
    this.#thread = new Thread({
      send: (text) => void chat.send(text),
      edit: (message, text) => chat.edit(message, text),
      regenerate: (message) => chat.regenerate(message),
      turn: (message, by) => chat.turn(message, by),
    });
    this.#composer = new Composer({
      send: (text) => chat.send(text),
      stop: () => void chat.stop(),
      editLast: () => this.#thread.editLast(),
    });
    this.#sidebar = new Sidebar({
      chat,
      store,
      notify: (text, undo) => this.#notify(text, undo),
      opened: () => {
        this.#conversationsPanel.closeOver();
        this.#composer.focus();
      },
    });
    this.#bind();
  }

  #bind(): void {
    const begin = () => {
      this.#chat.begin();
      this.#conversationsPanel.closeOver();
      this.#composer.focus();
    };
    const shortcuts = find<HTMLDialogElement>("#shortcuts");
    const showShortcuts = () => shortcuts.showModal();
    find("#new-chat").addEventListener("click", begin);
    find("#show-shortcuts").addEventListener("click", showShortcuts);
    find("#close-shortcuts").addEventListener("click", () => shortcuts.close());
    this.#model.addEventListener("change", () => {
      this.#set({ ...this.#chat.conversation.settings, model: this.#model.value });
      this.#showFigures();
    });
    addEventListener("hashchange", () => void this.#openByAddress());
    document.addEventListener("visibilitychange", () => void this.#chat.keep());
    bindShortcuts([
      { keys: ["Enter"], what: "Send" },
      { keys: ["Shift", "Enter"], what: "New line" },
      { keys: ["↑"], what: "Edit the last question, in an empty box" },
      { key: "escape", keys: ["Esc"], what: "Stop the answer", run: () => this.#escape() },
      {
        ...{ key: "escape", shift: true, keys: ["Shift", "Esc"], what: "Go to the message box" },
        run: () => this.#composer.focus(),
      },
      {
        key: "o",
        ctrl: true,
        shift: true,
        keys: ["Ctrl", "Shift", "O"],
        what: "New chat",
        run: begin,
      },
      {
        ...{ key: "enter", ctrl: true, shift: true, keys: ["Ctrl", "Shift", "Enter"] },
        what: "Another answer",
        run: () => this.#regenerateLast(),
      },
      {
        ...{ key: "b", ctrl: true, keys: ["Ctrl", "B"], what: "Conversations" },
        run: () => this.#conversationsPanel.toggle(),
      },
      {
        ...{ key: ",", ctrl: true, keys: ["Ctrl", ","], what: "Settings" },
        run: () => this.#settingsPanel.toggle(),
      },
      { key: "/", ctrl: true, keys: ["Ctrl", "/"], what: "These keys", run: showShortcuts },
    ]);
  }

  /** Fills the page. */
  async open(): Promise<void> {
    await this.#openByAddress();
    this.changed();
    await Promise.all([this.#sidebar.update(), this.#findModels()]);
    if (this.#storeProblem) this.#notify(this.#storeProblem);
  }

  async #openByAddress(): Promise<void> {
    const id = location.hash.slice(1);
    if (id !== "" && id !== this.#chat.conversation.id) await this.#chat.open(id);
  }

  #escape(): boolean {
    if (document.querySelector("dialog[open]")) return false;
    return this.#conversationsPanel.closeOver() || this.#settingsPanel.closeOver() ||
      this.#chat.stop();
  }

  #regenerateLast(): boolean {
    const last = pathTo(this.#chat.conversation).at(-1);
    if (last?.role !== "assistant") return false;
    this.#chat.regenerate(last);
    return true;
  }

  #set(settings: Settings): void {
    this.#chat.set(settings);
    const { schema: _, ...kept } = settings;
    writeValue("settings", kept);
    this.#showBound();
  }

  changed(): void {
    const { conversation, running } = this.#chat;
    this.#thread.show(conversation, running);
    this.#composer.update(running !== undefined);
    // Not while somebody types in it.
    if (conversation !== this.#shown) this.#settings.show(conversation.settings);
    this.#shown = conversation;
    this.#sidebar.mark();
    this.#showModel();
    this.#showBound();
    const title = conversation.title || "New chat";
    find("#title").textContent = title;
    document.title = conversation.title ? `${title} – Troodon` : "Troodon";
    const address = conversation.messages.length > 0 ? `#${conversation.id}` : location.pathname;
    if (location.hash !== address) history.replaceState(null, "", address);
  }

  began(): void {
    this.#composer.focus();
    this.#announcer.begin();
  }

  grew(message: Message): void {
    this.#thread.grow();
    this.#announcer.grow(message.text);
    this.#showFigures(message);
  }

  ended(message: Message, conversation: Conversation): void {
    const { problem, finish = "" } = message;
    const isOpen = conversation === this.#chat.conversation;
    if (!isOpen) this.#notify(`“${conversation.title}” has its answer.`);
    else if (problem === undefined) {
      this.#announcer.end(message.text, ENDS[finish] ?? "Answer complete");
    }
    if (problem?.param?.startsWith("response_format")) this.#settings.tellSchema(problem.message);
    void this.#readModels().catch(() => {});
  }

  mayAsk(): boolean {
    if (this.#settings.isRight) return true;
    if (!this.#settingsPanel.isOpen) this.#settingsPanel.open();
    this.#settings.focusWrong();
    return false;
  }

  titlesChanged(): void {
    void this.#sidebar.update();
    if (!this.#chat.running) this.changed();
  }

  keyWanted(message: string): void {
    this.#keyDialog.ask(message);
  }

  failed(message: string): void {
    this.#notify(message);
  }

  async #findModels(): Promise<void> {
    try {
      await this.#readModels();
      if (this.#models.length === 0) this.#notify("This server has no model that answers.");
    } catch (error) {
      const { status, message } = error as ApiError;
      if (status === 401) this.#keyDialog.ask(message);
      this.#notify(message, () => void this.#findModels(), "Try again");
      return;
    }
    this.#notify("");
    this.#model.replaceChildren(...this.#models.map(({ id }) => html("option", {}, id)));
    this.#model.disabled = this.#models.length === 0;
    this.#showModel();
  }

  /** Chooses the model of the conversation, or the first one where that is gone. */
  #showModel(): void {
    const { settings } = this.#chat.conversation;
    const [first] = this.#models;
    if (first === undefined) return;
    if (!this.#models.some(({ id }) => id === settings.model)) {
      this.#chat.set({ ...settings, model: first.id });
    }
    this.#model.value = this.#chat.conversation.settings.model!;
    this.#showFigures();
  }

  /** Which models there are, and what they take by now. */
  async #readModels(): Promise<void> {
    this.#models = await this.#api.models();
    this.#showFigures();
  }

  #showFigures(message: Message | undefined = pathTo(this.#chat.conversation).at(-1)): void {
    const { perSecond, context } = message?.figures ?? {};
    const model = this.#models.find(({ id }) => id === this.#model.value);
    const filled = Math.round((context ?? 0) / (model?.contextLength ?? Infinity) * 100);
    const isWaiting = message !== undefined && message === this.#chat.running && !message.text;
    const parts = [
      isWaiting && model?.isLoaded === false && "loading the model…",
      perSecond && speed(perSecond),
      model?.memory && megabytes(model.memory),
      filled >= 1 && `${filled} % of context`,
    ];
    find("#figures").replaceChildren(
      ...parts.filter(Boolean).map((part) => html("span", {}, part as string)),
    );
  }

  /** Says what binds the answers, which nobody sees while the panel is closed. */
  #showBound(): void {
    const { system = "", schema = "" } = this.#chat.conversation.settings;
    const parts = [
      system.trim() !== "" && "System prompt is set.",
      schema.trim() !== "" && schemaProblem(schema) === undefined && "Answers follow the schema.",
    ];
    find("#bound").textContent = parts.filter(Boolean).join(" ");
  }

  #notify(text: string, act?: () => void, label = "Undo"): void {
    clearTimeout(this.#noticeTimer);
    const notice = find("#notice");
    const clear = () => notice.replaceChildren();
    notice.replaceChildren(text);
    if (act === undefined) return;
    const click = () => {
      clear();
      act();
    };
    notice.append(" ", html("button", { type: "button", class: "link", click }, label));
    if (label === "Undo") this.#noticeTimer = setTimeout(clear, NOTICE_MS);
  }
}

// Before the first frame, so that it has the right colours.
bindTheme();
drawIcons();
void openStore().then((store) => new Page(store).open());

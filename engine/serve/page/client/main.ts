// The chat page: puts its parts together. What each part shows and asks stands in its own file; the state is chat.ts's.

import { Announcer } from "./announcer.ts";
import { Api } from "./api.ts";
import { Chat, type ChatView } from "./chat.ts";
import { Composer } from "./composer.ts";
import { type Conversation, type Message, pathTo } from "./conversation.ts";
import { drawIcons, find } from "./dom.ts";
import { keptKey, KeyDialog } from "./key_dialog.ts";
import { ModelChoice } from "./model_choice.ts";
import { Notice } from "./notice.ts";
import { Panel } from "./panels.ts";
import { DEFAULTS, schemaProblem, type Settings } from "./settings.ts";
import { SettingsPanel } from "./settings_panel.ts";
import { bindShortcuts } from "./shortcuts.ts";
import { Sidebar } from "./sidebar.ts";
import { openStore, readValue, writeValue } from "./store.ts";
import { bindTheme } from "./theme.ts";
import { Thread } from "./thread.ts";

const ENDS: Readonly<Record<string, string>> = {
  stopped: "Stopped",
  length: "Answer cut at its longest",
};

/** The page. */
class Page implements ChatView {
  readonly #api = new Api();
  readonly #notice = new Notice();
  readonly #announcer = new Announcer(find("#announcements"));
  readonly #keyDialog = new KeyDialog((key) => {
    this.#api.key = key;
    void this.#models.find();
  });
  readonly #conversationsPanel = new Panel("conversations", true);
  readonly #settingsPanel = new Panel("settings", false);
  readonly #settings = new SettingsPanel((settings) => {
    const { model } = this.#chat.conversation.settings;
    this.#set({ ...settings, ...model !== undefined && { model } });
  });
  readonly #composer: Composer;
  readonly #thread: Thread;
  readonly #models: ModelChoice;
  readonly #chat: Chat;
  readonly #sidebar: Sidebar;
  readonly #storeProblem: string | undefined;
  #shown: Conversation | undefined;

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
      shown: (message) => this.#models.showFigures(message),
    });
    this.#composer = new Composer({
      send: (text, picture) => chat.send(text, picture),
      failed: (message) => this.failed(message),
      stop: () => void chat.stop(),
      editLast: () => this.#thread.editLast(),
    });
    this.#sidebar = new Sidebar({
      chat,
      store,
      notice: this.#notice,
      opened: () => {
        this.#conversationsPanel.closeOver();
        this.#composer.focus();
      },
    });
    this.#models = new ModelChoice({
      ...{ chat, api: this.#api, notice: this.#notice },
      sees: (sees) => this.#composer.takePictures(sees),
      chosen: (model) => this.#set({ ...chat.conversation.settings, model }),
      keyWanted: (message) => this.keyWanted(message),
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
    await Promise.all([this.#sidebar.update(), this.#models.find()]);
    if (this.#storeProblem) this.#notice.show(this.#storeProblem);
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
    this.#models.show();
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
  }

  ended(message: Message, conversation: Conversation): void {
    const { problem, finish = "" } = message;
    const isOpen = conversation === this.#chat.conversation;
    if (!isOpen) this.#notice.show(`“${conversation.title}” has its answer.`);
    else if (problem === undefined) {
      this.#announcer.end(message.text, ENDS[finish] ?? "Answer complete");
    }
    if (problem?.param?.startsWith("response_format")) this.#settings.tellSchema(problem.message);
    void this.#models.refresh().catch(() => {});
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
    this.#notice.show(message, { stays: true });
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
}

// Before the first frame, so that it has the right colours.
bindTheme();
drawIcons();
void openStore().then((store) => new Page(store).open());

// The panel of settings: what is wrong with a box is said beside it while it is typed.

import { find, html } from "./dom.ts";
import {
  DEFAULTS,
  type NumberField,
  numberProblem,
  NUMBERS,
  schemaProblem,
  type Settings,
} from "./settings.ts";

/** A box with what is wrong with it beside it. */
interface Box {
  readonly input: HTMLInputElement | HTMLTextAreaElement;
  /** Says what is wrong, or that nothing is. */
  tell(problem: string | undefined): void;
}

function numberBox(field: NumberField): Box {
  const id = `set-${field.name}`;
  const input = html("input", {
    ...{ id, inputmode: "decimal", placeholder: "default", autocomplete: "off" },
    "aria-describedby": `${id}-help ${id}-problem`,
  });
  const problem = html("p", { id: `${id}-problem`, class: "wrong", "aria-live": "polite" });
  find(field.isRare ? "#rare-numbers" : "#numbers").append(html(
    "div",
    { class: "number" },
    html("label", { for: id }, field.label),
    input,
    html("p", { id: `${id}-help`, class: "help" }, field.help),
    problem,
  ));
  return { input, tell: (text) => tell(input, problem, text) };
}

function tell(
  input: HTMLElement,
  problem: HTMLElement,
  text: string | undefined,
): void {
  if (text === undefined) input.removeAttribute("aria-invalid");
  else input.setAttribute("aria-invalid", "true");
  problem.textContent = text ?? "";
}

/** What the panel sets: all but the model. */
type PanelSettings = Omit<Settings, "model">;

/** The panel. */
export class SettingsPanel {
  readonly #numbers = new Map(NUMBERS.map((field) => [field, numberBox(field)] as const));
  readonly #system = find<HTMLTextAreaElement>("#system");
  readonly #stop = find<HTMLTextAreaElement>("#stop-texts");
  readonly #thinking = find<HTMLSelectElement>("#thinking");
  readonly #probabilities = find<HTMLInputElement>("#probabilities");
  readonly #schema = find<HTMLTextAreaElement>("#schema");
  readonly #schemaProblem = find("#schema-problem");
  readonly #changed: (settings: PanelSettings) => void;

  /** `changed` gets the settings after each change. */
  constructor(changed: (settings: PanelSettings) => void) {
    this.#changed = changed;
    find("#settings").addEventListener("input", () => this.#read());
    find("#clear-settings").addEventListener("click", () => {
      this.show(DEFAULTS);
      this.#read();
    });
  }

  /** Shows settings. */
  show(settings: Settings): void {
    for (const [{ name }, { input }] of this.#numbers) {
      input.value = String(settings.numbers?.[name] ?? "");
    }
    this.#system.value = settings.system ?? "";
    this.#stop.value = settings.stop ?? "";
    this.#schema.value = settings.schema ?? "";
    this.#thinking.value = String(settings.thinking ?? "");
    this.#probabilities.checked = settings.probabilities ?? true;
    this.#check();
  }

  /** Focuses the first box that is wrong; false where none is. */
  focusWrong(): boolean {
    const wrong = find("#settings").querySelector<HTMLElement>("[aria-invalid]");
    wrong?.closest("details")?.setAttribute("open", "");
    wrong?.focus();
    return wrong !== null;
  }

  /** Whether all boxes can be used. */
  get isRight(): boolean {
    return find("#settings").querySelector("[aria-invalid]") === null;
  }

  /** Says beside the schema what the server says of it. */
  tellSchema(problem: string): void {
    tell(this.#schema, this.#schemaProblem, problem);
  }

  #check(): void {
    for (const [field, { input, tell }] of this.#numbers) tell(numberProblem(field, input.value));
    tell(this.#schema, this.#schemaProblem, schemaProblem(this.#schema.value));
  }

  #read(): void {
    this.#check();
    const numbers = [...this.#numbers]
      .filter(([, { input }]) => input.value.trim() !== "" && !input.hasAttribute("aria-invalid"))
      .map(([{ name }, { input }]) => [name, Number(input.value)] as const);
    const thinking = { true: true, false: false }[this.#thinking.value];
    this.#changed({
      numbers: Object.fromEntries(numbers),
      system: this.#system.value,
      stop: this.#stop.value,
      schema: this.#schema.value,
      ...thinking !== undefined && { thinking },
      probabilities: this.#probabilities.checked,
    });
  }
}

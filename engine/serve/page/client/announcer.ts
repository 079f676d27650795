// What a screen reader is told: answers by sentences as they come, not by tokens, and what happened.

/** At the end of a sentence, or of a line. */
const PAUSE = /[.!?…:](?=\s)|\n/g;

/** Marks of Markdown, which are no words. */
function spoken(text: string): string {
  return text.replace(/[`*_#>|~]+|^\s*-+\s/gm, " ").replace(/\s+/g, " ").trim();
}

/** A live region. */
export class Announcer {
  readonly #region: HTMLElement;
  /** Characters of the answer under way that were said. */
  #said = 0;

  constructor(region: HTMLElement) {
    this.#region = region;
  }

  /** Says a text after what was said before. */
  say(text: string): void {
    const words = spoken(text);
    if (words === "") return;
    const line = document.createElement("p");
    line.textContent = words;
    this.#region.append(line);
    while (this.#region.childElementCount > 5) this.#region.firstChild!.remove();
  }

  /** An answer begins. */
  begin(): void {
    this.#said = 0;
    this.say("Answering");
  }

  /** Says what is complete of an answer and was not said yet. */
  grow(text: string): void {
    const ends = [...text.slice(this.#said).matchAll(PAUSE)];
    const last = ends.at(-1);
    if (last === undefined) return;
    const end = this.#said + last.index + 1;
    this.say(text.slice(this.#said, end));
    this.#said = end;
  }

  /** Says the rest of an answer and how it ended. */
  end(text: string, how: string): void {
    this.say(text.slice(this.#said));
    this.say(how);
  }
}

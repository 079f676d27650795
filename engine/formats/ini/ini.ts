// Inferflow's configuration files [IF-1, §4.1]: lines of `key = value` under `[section]`s. A `#` or `;` at the
// beginning of a line makes it a comment, so keys can be commented out; elsewhere they are text. Of a key
// that stands twice the later value counts. Values stay text with their macros; macros.ts expands them and
// engine/inferflow/keys.ts says what they may be. A line that is neither is an error, not skipped.

import { FormatError } from "../../errors.ts";

/** A value and the line that it stands in, from 1. */
export interface IniValue {
  readonly text: string;
  readonly line: number;
}

/** Keys of a section, in the order of the file. */
export type IniSection = ReadonlyMap<string, IniValue>;

/** A configuration file. */
export interface IniFile {
  /** Path, for messages and for what is relative to it. */
  readonly name: string;
  /** By name, without brackets; keys before the first section are in `""`. */
  readonly sections: ReadonlyMap<string, IniSection>;
}

/**
 * Parses a configuration.
 *
 * @param name Path, for messages.
 * @throws {FormatError} With the line that is no section, key or comment.
 */
export function parseIni(text: string, name: string): IniFile {
  const sections = new Map<string, Map<string, IniValue>>();
  let section = new Map<string, IniValue>();
  sections.set("", section);
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    const place = `line ${index + 1}`;
    if (line.startsWith("[")) {
      const title = /^\[([^[\]]*)\]$/.exec(line)?.[1]?.trim();
      if (!title) {
        throw new FormatError(`is no section: ${quote(line)}`, {
          file: name,
          place,
          remedy: "Write [NAME] and nothing behind it",
        });
      }
      section = sections.get(title) ?? new Map();
      sections.set(title, section);
      continue;
    }
    const equals = line.indexOf("=");
    const key = line.slice(0, Math.max(equals, 0)).trim();
    if (key === "") {
      throw new FormatError(`is neither a section, a key nor a comment: ${quote(line)}`, {
        file: name,
        place,
        remedy: "Write KEY = VALUE, or # in front of a comment",
      });
    }
    section.delete(key); // so that the order is that of the values that count
    section.set(key, { text: line.slice(equals + 1).trim(), line: index + 1 });
  }
  return { name, sections };
}

function quote(line: string): string {
  return JSON.stringify(line.length > 40 ? `${line.slice(0, 37)}...` : line);
}

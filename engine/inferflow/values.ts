// Values of a configuration: macros expanded, and checked for what they must be. Errors name file, section, key and
// line; what is unknown or has no meaning here is told once.

import { FormatError } from "../errors.ts";
import type { IniFile } from "../formats/ini/ini.ts";
import { expandMacros } from "../formats/ini/macros.ts";
import type { KeyTable } from "./keys.ts";

/** A configuration with its macros' surroundings. */
export interface Configuration {
  readonly file: IniFile;
  /** Built-in macros beside those of the file's own place. */
  readonly macros: ReadonlyMap<string, string>;
  /** One sentence each. */
  readonly warnings: Set<string>;
}

/** Folder of a path, with the slash behind it. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1) || "./";
}

/** Joins the macros that every configuration has. */
export function openConfiguration(file: IniFile, warnings: Set<string>): Configuration {
  const folder = folderOf(file.name);
  const name = file.name.slice(folder === "./" ? 0 : folder.length).replace(/\.[^.]*$/, "");
  const macros = new Map([
    ["config_dir", folder],
    ["app_dir", folder],
    ["data_root_dir", folder],
    ["run_name", name],
    ["app_name", name],
  ]);
  const plain = { file, macros: new Map(macros), warnings };
  const root = textOf(plain, { section: "app_env.base", key: "data_root_dir" });
  if (root !== undefined && root !== "") macros.set("data_root_dir", root);
  macros.set("data_home_dir", macros.get("data_root_dir")!);
  return { file, macros, warnings };
}

/** A value; undefined where the key is absent. */
export function textOf(
  { file, macros, warnings }: Configuration,
  { section, key }: { readonly section: string; readonly key: string },
): string | undefined {
  const value = file.sections.get(section)?.get(key);
  if (value === undefined) return undefined;
  return expandMacros(value.text, {
    scope: { file, section, builtIn: macros, warn: (message) => warnings.add(message) },
  });
}

/** @throws {FormatError} Naming the key that must be there. */
export function neededText(
  config: Configuration,
  { section, key }: { readonly section: string; readonly key: string },
): string {
  const value = textOf(config, { section, key });
  if (value !== undefined && value !== "") return value;
  throw new FormatError("is missing", { file: config.file.name, place: `[${section}] ${key}` });
}

/** A number within bounds; undefined where the key is absent or empty. */
export function numberOf(
  config: Configuration,
  { section, key }: { readonly section: string; readonly key: string },
  { min = 0, max = 2 ** 31, integer = true }: { min?: number; max?: number; integer?: boolean } =
    {},
): number | undefined {
  const text = textOf(config, { section, key });
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  const fits = integer ? Number.isInteger(value) : Number.isFinite(value);
  if (fits && value >= min && value <= max) return value;
  throw wrong(
    config,
    { section, key, message: `must be ${integer ? "a whole number" : "a number"}, ${min} or more` },
  );
}

/** An error about a value. */
export function wrong(
  { file }: Configuration,
  { section, key, message }: {
    readonly section: string;
    readonly key: string;
    readonly message: string;
  },
): FormatError {
  const value = file.sections.get(section)?.get(key);
  const shown = value && JSON.stringify(value.text.slice(0, 60));
  const line = value && `line ${value.line}, `;
  return new FormatError(shown === undefined ? message : `${message}, and is ${shown}`, {
    file: file.name,
    place: `${line ?? ""}[${section}] ${key}`,
  });
}

/** A list as `count` and numbered keys. @throws {FormatError} If one of them is missing. */
export function numbered(
  config: Configuration,
  section: string,
  { count, item }: { readonly count: string; readonly item: string },
): string[] {
  const total = numberOf(config, { section, key: count }, { max: 100_000 }) ?? 0;
  return Array.from({ length: total }, (_, index) => {
    const text = textOf(config, { section, key: `${item}${index + 1}` });
    if (text !== undefined) return text;
    throw new FormatError(`is missing, and ${count} is ${total}`, {
      file: config.file.name,
      place: `[${section}] ${item}${index + 1}`,
    });
  });
}

/**
 * Tells of unknown sections and keys, and of values without a meaning here.
 *
 * @param skip Sections that are not in use: only their unknown keys are told.
 */
export function checkKeys(
  config: Configuration,
  { table, skip = () => false }: {
    readonly table: KeyTable;
    readonly skip?: ((section: string) => boolean) | undefined;
  },
): void {
  const { file: { name, sections }, warnings } = config;
  for (const [section, values] of sections) {
    if (section === "" && values.size === 0) continue;
    const dot = section.indexOf(".");
    const keys = ownEntry(table, section) ??
      (dot < 0 ? undefined : ownEntry(table, `${section.slice(0, dot)}.*`));
    if (!keys) {
      warnings.add(`${name}: section [${section}] is not known and changes nothing`);
      continue;
    }
    for (const [key, { line }] of values) {
      const rule = ownEntry(keys, key) ?? ownEntry(keys, key.replace(/\d+$/, "#"));
      const place = `${name}, line ${line}, [${section}] ${key}`;
      if (!rule) warnings.add(`${place}: is not known and changes nothing`);
      else if (rule.quiet && !skip(section)) {
        const text = textOf(config, { section, key })!;
        if (!rule.quiet.some((one) => one.toLowerCase() === text.toLowerCase())) {
          warnings.add(`${place} = ${text}: changes nothing, ${rule.use}`);
        }
      }
    }
  }
}

function ownEntry<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

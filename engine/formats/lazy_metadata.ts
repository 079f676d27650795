// Metadata whose lists of strings are decoded when they are first asked for; a map like any other to those who read it.

import type { MetadataValue } from "./source.ts";
import { StringTable } from "./string_table.ts";

/** Key/value pairs of a GGUF file, in file order. */
export class LazyMetadata extends Map<string, MetadataValue> {
  readonly #tables = new Map<string, StringTable>();

  /** Sets a key to a value that may be decoded later. */
  put(key: string, value: MetadataValue | StringTable): void {
    if (!(value instanceof StringTable)) {
      super.set(key, value);
      return;
    }
    this.#tables.set(key, value);
    super.set(key, null);
  }

  /** The strings of a key as they lie in the file; undefined where it has another value. */
  table(key: string): StringTable | undefined {
    return this.#tables.get(key);
  }

  override get(key: string): MetadataValue | undefined {
    return this.#tables.get(key)?.all() ?? super.get(key);
  }

  override *entries(): MapIterator<[string, MetadataValue]> {
    for (const key of super.keys()) yield [key, this.get(key)!];
  }

  override *values(): MapIterator<MetadataValue> {
    for (const key of super.keys()) yield this.get(key)!;
  }

  override [Symbol.iterator](): MapIterator<[string, MetadataValue]> {
    return this.entries();
  }

  override forEach(
    visit: (value: MetadataValue, key: string, map: Map<string, MetadataValue>) => void,
  ): void {
    for (const [key, value] of this) visit(value, key, this);
  }
}

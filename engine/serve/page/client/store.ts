// Conversations in the browser: IndexedDB, with the list of titles apart, so that opening the page does not read them
// all. Where the browser keeps nothing they live as long as the page, and whoever asks is told.

import type { Conversation } from "./conversation.ts";

/** What the list shows. */
export type ConversationTitle = Pick<Conversation, "id" | "title" | "updated">;

/** A place for conversations. */
export interface Store {
  /** Why nothing outlives the page, or undefined. */
  readonly problem?: string;
  /** All titles, latest first. */
  titles(): Promise<readonly ConversationTitle[]>;
  get(id: string): Promise<Conversation | undefined>;
  /** @throws {Error} If there is no room for it. */
  put(conversation: Conversation): Promise<void>;
  remove(id: string): Promise<void>;
}

const TITLES = "titles", WHOLE = "conversations";

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Latest first. */
function sorted(titles: readonly ConversationTitle[]): readonly ConversationTitle[] {
  return titles.toSorted((a, b) => b.updated - a.updated);
}

function titleOf({ id, title, updated }: Conversation): ConversationTitle {
  return { id, title, updated };
}

class DatabaseStore implements Store {
  readonly #database: IDBDatabase;

  constructor(database: IDBDatabase) {
    this.#database = database;
  }

  async titles(): Promise<readonly ConversationTitle[]> {
    return sorted(await settled(this.#database.transaction(TITLES).objectStore(TITLES).getAll()));
  }

  get(id: string): Promise<Conversation | undefined> {
    return settled(this.#database.transaction(WHOLE).objectStore(WHOLE).get(id));
  }

  async put(conversation: Conversation): Promise<void> {
    try {
      await this.#write(conversation);
    } catch (error) {
      if ((error as Error).name !== "QuotaExceededError") throw error;
      // Probabilities take many times the room of the text.
      const messages = conversation.messages.map(({ tokens: _, ...message }) => message);
      await this.#write({ ...conversation, messages });
    }
  }

  #write(conversation: Conversation): Promise<void> {
    return this.#change((titles, whole) => {
      titles.put(titleOf(conversation));
      whole.put(conversation);
    });
  }

  remove(id: string): Promise<void> {
    return this.#change((titles, whole) => {
      titles.delete(id);
      whole.delete(id);
    });
  }

  #change(write: (titles: IDBObjectStore, whole: IDBObjectStore) => void): Promise<void> {
    const transaction = this.#database.transaction([TITLES, WHOLE], "readwrite");
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("The browser gave up"));
      write(transaction.objectStore(TITLES), transaction.objectStore(WHOLE));
    });
  }
}

/** A store that ends with the page. */
function memoryStore(problem: string): Store {
  const all = new Map<string, Conversation>();
  return {
    problem,
    titles: () => Promise.resolve(sorted([...all.values()].map(titleOf))),
    get: (id) => Promise.resolve(all.get(id)),
    put: (conversation) => Promise.resolve(void all.set(conversation.id, conversation)),
    remove: (id) => Promise.resolve(void all.delete(id)),
  };
}

/** Opens the browser's store, or one in memory. */
export async function openStore(): Promise<Store> {
  try {
    const request = indexedDB.open("troodon", 1);
    request.onupgradeneeded = () => {
      for (const name of [TITLES, WHOLE]) request.result.createObjectStore(name, { keyPath: "id" });
    };
    const database = await settled(request);
    // Another tab may have a newer page, which waits for this one to let go.
    database.onversionchange = () => database.close();
    return new DatabaseStore(database);
  } catch {
    return memoryStore("This browser keeps no data for this page: conversations end with it.");
  }
}

/** A small value in localStorage, which some browsers refuse. */
export function readValue<T>(name: string, otherwise: T): T {
  try {
    return JSON.parse(localStorage.getItem(`troodon.${name}`)!) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keeps a small value, or forgets it where it is undefined; does nothing where the browser refuses. */
export function writeValue(name: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(`troodon.${name}`);
    else localStorage.setItem(`troodon.${name}`, JSON.stringify(value));
  } catch {
    // The page works without.
  }
}

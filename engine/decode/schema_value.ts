// The type of a value that a schema allows, as TypeScript sees it: what a library's schema declares, or what a plain one
// says that is written `as const`. Where a schema says what types cannot, the type is the next larger one.

/** The value of a schema. */
export type SchemaValue<S> = [S] extends [undefined] ? undefined
  : S extends { readonly "~standard": { readonly types?: infer T } }
    ? NonNullable<T> extends { readonly output: infer Output } ? Output : unknown
  : S extends { readonly static: infer Static } ? Static
  : PlainValue<S>;

/** The value of a plain JSON Schema. */
export type PlainValue<S> = S extends { readonly const: infer Value } ? Value
  : S extends { readonly enum: readonly (infer Value)[] } ? Value
  : S extends { readonly anyOf: readonly (infer One)[] } ? Each<One>
  : S extends { readonly oneOf: readonly (infer One)[] } ? Each<One>
  : S extends { readonly type: infer Type } ? OfType<S, Type>
  : unknown;

type Each<S> = S extends unknown ? PlainValue<S> : never;

type OfType<S, Type> = Type extends readonly (infer One)[] ? OfType<S, One>
  : string extends Type ? unknown
  : Type extends "string" ? string
  : Type extends "number" | "integer" ? number
  : Type extends "boolean" ? boolean
  : Type extends "null" ? null
  : Type extends "array" ? ArrayValue<S>
  : Type extends "object" ? ObjectValue<S>
  : unknown;

type ArrayValue<S> = S extends { readonly items: infer Item } ? PlainValue<Item>[] : unknown[];

type ObjectValue<S> = S extends { readonly properties: infer Properties } ? Flat<
    & { [Name in keyof Properties & RequiredNames<S>]: PlainValue<Properties[Name]> }
    & { [Name in Exclude<keyof Properties, RequiredNames<S>>]?: PlainValue<Properties[Name]> }
  >
  : Record<string, unknown>;

type RequiredNames<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Flat<T> = { [Name in keyof T]: T[Name] };

// The type of a value that a schema allows, as TypeScript sees it: what a library's schema declares, or what a plain one
// says that is written `as const`. Where a schema says what types cannot, the type is the next larger one.

/**
 * The value of a schema.
 * @category Text
 */
export type SchemaValue<S> = [S] extends [undefined] ? undefined
  : S extends { readonly "~standard": { readonly types?: infer T } }
    ? NonNullable<T> extends { readonly output: infer Output } ? Output : unknown
  : S extends { readonly static: infer Static } ? Static
  : PlainValue<S>;

/**
 * The value of a plain JSON Schema.
 * @category Text
 */
export type PlainValue<S> = S extends { readonly const: infer Value } ? Value
  : S extends { readonly enum: readonly (infer Value)[] } ? Value
  : S extends { readonly anyOf: readonly (infer One)[] }
    ? One extends unknown ? PlainValue<One> : never
  : S extends { readonly oneOf: readonly (infer One)[] }
    ? One extends unknown ? PlainValue<One> : never
  : S extends { readonly type: infer Type } ? TypedValue<S, Type>
  : unknown;

/**
 * The value of a plain JSON Schema that says a type, or several.
 * @category Text
 */
export type TypedValue<S, Type> = Type extends readonly (infer One)[] ? TypedValue<S, One>
  : string extends Type ? unknown
  : Type extends "string" ? string
  : Type extends "number" | "integer" ? number
  : Type extends "boolean" ? boolean
  : Type extends "null" ? null
  : Type extends "array" ? ArrayValue<S>
  : Type extends "object" ? ObjectValue<S>
  : unknown;

/**
 * The value of a schema of arrays.
 * @category Text
 */
export type ArrayValue<S> = S extends { readonly items: infer Item } ? PlainValue<Item>[]
  : unknown[];

/**
 * The value of a schema of objects.
 * @category Text
 */
export type ObjectValue<S> = S extends { readonly properties: infer Properties } ? Flat<
    & { [Name in keyof Properties & RequiredNames<S>]: PlainValue<Properties[Name]> }
    & { [Name in Exclude<keyof Properties, RequiredNames<S>>]?: PlainValue<Properties[Name]> }
  >
  : Record<string, unknown>;

/**
 * Names that a schema requires.
 * @category Text
 */
export type RequiredNames<S> = S extends { readonly required: readonly (infer Name)[] } ? Name
  : never;

/**
 * The same type, written as one object.
 * @category Text
 */
export type Flat<T> = { [Name in keyof T]: T[Name] };

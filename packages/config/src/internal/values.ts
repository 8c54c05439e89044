/** Reads and changes values of a file by their paths. */
import { Adapter } from "@requeue/core/port"
import type * as StrictSchema from "../StrictSchema.ts"

export type Path = StrictSchema.Problem["path"]

export const samePath = (a: Path, b: Path): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Whether a value is an object of the file. In a module, an adapter or an object of a class with methods is one value. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (typeof value !== "object" || value === null || Array.isArray(value) || Adapter.isAdapter(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm, such as a test runner's, have another prototype.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return true
  return Object.getOwnPropertyNames(prototype).every((name) => name === "constructor") && !hasMethods(value)
}

const hasMethods = (value: object): boolean => Object.values(value).some((item) => typeof item === "function")

/** Returns the paths of all values that are neither object nor list. */
export const leaves = (value: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => leaves(item, [...path, index]))
  if (isObject(value)) return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]))
  return [path]
}

/** Returns the value at a path; `undefined` if there is none. */
export const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (Object(inner) === inner ? Reflect.get(Object(inner), key) : undefined), value)

/** Replaces the value at an existing path; `undefined` removes it. */
export const put = (value: unknown, [key, ...rest]: Path, inner: unknown): unknown => {
  if (key === undefined) return inner
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? put(item, rest, inner) : item))
  if (!isObject(value) || !Object.hasOwn(value, key)) return value
  const changed = put(value[key], rest, inner)
  const { [key]: _, ...others } = value
  return changed === undefined ? others : { ...value, [key]: changed }
}

/** Turns a text into a number or a boolean if the value before was one. */
export const typed = (value: unknown, text: string): unknown => {
  if (typeof value === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text)
  if (typeof value === "boolean" && ["true", "false"].includes(text)) return text === "true"
  return text
}

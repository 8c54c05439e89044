/**
 * Reads SQS's responses. The SDK does not check their types, and a foreign producer or a proxy may send others. Pure.
 */
import { OptionKind } from "@requeue/core/port"

/** A response without the value that its call needs. */
class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer"
}

const fieldOf = (answer: unknown, name: string): unknown =>
  OptionKind.isObject(answer) ? Reflect.get(answer, name) : undefined

/** Returns a text of a response; throws if it is missing. */
export const textIn = (answer: unknown, name: string): string => {
  const value = fieldOf(answer, name)
  if (typeof value === "string") return value
  throw new UnreadableAnswer(`SQS answered no ${name}`)
}

/** Returns the texts of a record in a response. Some servers send numbers, which the SDK accepts. */
export const textsIn = (answer: unknown, name: string): Readonly<Record<string, string>> => {
  const record = fieldOf(answer, name)
  const entries: ReadonlyArray<[string, unknown]> = OptionKind.isObject(record) ? Object.entries(record) : []
  const texts = entries.filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]))
}

/** Returns a list of a response. */
const listIn = (answer: unknown, name: string): ReadonlyArray<unknown> => {
  const list = fieldOf(answer, name)
  return Array.isArray(list) ? list : []
}

/** Returns the texts of a list in a response. */
export const textListIn = (answer: unknown, name: string): ReadonlyArray<string> =>
  listIn(answer, name).filter((each) => typeof each === "string")

/** Returns the objects of a list in a response. */
export const objectsIn = (answer: unknown, name: string): ReadonlyArray<object> =>
  listIn(answer, name).filter(OptionKind.isObject)
